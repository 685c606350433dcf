package rook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/workload"
)

// safeInterval is how often the removal of an OSD asks whether that is safe.
const safeInterval = 15 * time.Second

// errEnded means that the operator has ended, and its commands with it.
var errEnded = errors.New("command terminated with exit code 137")

// exec runs what Rook's plugin for kubectl runs in the operator's container: `ceph status`, of which only the health and the placement
// groups are modelled, `ceph osd out ID`, and `rook ceph osd remove --osd-ids=ID`, which is its purge-osd. Not modelled: all other
// commands of the two programs, several OSDs at once, and --force-osd-removal=true.
func (o *rookOperator) exec(ctx context.Context, cmd []string, _ io.Reader, stdout, stderr io.Writer) (int, error) {
	secret, err := o.Cluster.Client.CoreV1().Secrets(o.Pod.Namespace).Get(ctx, rookMonSecret, metav1.GetOptions{})
	if err != nil {
		return 1, err
	}
	line, id := words(cmd)
	c := o.rook.Ceph.Find(string(secret.Data["fsid"]))
	switch {
	case line != "ceph status" && line != "ceph osd out ID" && line != "rook ceph osd remove ID":
		return workload.UnknownCommand(cmd, stderr)
	case c == nil || c.Quorum() == nil:
		err = errors.New("RADOS timed out (error connecting to the cluster)")
	case line == "ceph status":
		groups := "active+clean"
		if !c.Clean() {
			groups = "active+recovering"
		}
		health, _ := c.Health()
		fmt.Fprintf(stdout, "  cluster:\n    health: %s\n  data:\n    pgs: 32 %s\n", health, groups)
	case line == "ceph osd out ID":
		if err = c.Out(id); err == nil {
			fmt.Fprintf(stderr, "marked out osd.%d.\n", id)
		}
	default:
		err = o.removeOSD(ctx, c, id, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1, nil
	}
	return 0, nil
}

// words returns a command without its flags, with ID for the number of an OSD.
func words(cmd []string) (line string, id int) {
	var all []string
	for _, word := range cmd {
		number, ids := strings.CutPrefix(word, "--osd-ids=")
		if n, err := strconv.Atoi(strings.TrimPrefix(number, "osd.")); err == nil {
			all, id = append(all, "ID"), n
		} else if !ids && !strings.HasPrefix(word, "--") {
			all = append(all, word)
		}
	}
	return strings.Join(all, " "), id
}

// removeOSD forgets an OSD that does not run, with its Deployment. It waits until all placement groups are well without it, for ever.
func (o *rookOperator) removeOSD(ctx context.Context, c *ceph.Cluster, id int, stdout io.Writer) error {
	if c.Up(id) {
		fmt.Fprintf(stdout, "cephosd: osd.%d is healthy. It cannot be removed unless it is 'down'\n", id)
		return nil
	}
	fmt.Fprintf(stdout, "cephosd: marking osd.%d out\n", id)
	if err := c.Out(id); err != nil {
		return err
	}
	for c.SafeToDestroy(id) != nil {
		fmt.Fprintf(stdout, "cephosd: osd.%d is NOT ok to destroy, retrying in 15s until success\n", id)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.Done():
			return errEnded
		case <-time.After(safeInterval):
		}
	}
	name, ended := fmt.Sprintf("rook-ceph-osd-%d", id), make(chan error, 1)
	remove := func() {
		delete(o.applied, "deployments/"+o.Pod.Namespace+"/"+name)
		ended <- ignoreMissing(o.Cluster.Client.AppsV1().Deployments(o.Pod.Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	select {
	case o.asked <- remove:
	case <-ctx.Done():
		return ctx.Err()
	case <-o.Done():
		return errEnded
	}
	if err := <-ended; err != nil {
		return err
	}
	fmt.Fprintf(stdout, "cephosd: purging osd.%d\n", id)
	if err := c.Purge(id); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "cephosd: completed removal of OSD %d\n", id)
	return nil
}
