package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Ceph is what Rook says of the storage of a provider; nothing in a cluster without Rook.
type Ceph struct {
	Lacks  []string // the copies, OSDs and monitors that Ceph misses, in its words
	OSDs   []OSD    // all that Rook has a Deployment of
	Copies int      // most copies that a pool keeps; 0 without a pool
}

// OSD is a disk of Ceph.
type OSD struct {
	ID   string
	Host string // name of its node
	Runs bool   // its pod is Ready
}

// PurgeOSD is the command that removes an OSD from Ceph, and its Deployment, followed by its id.
const PurgeOSD = "kubectl rook-ceph rook purge-osd "

// cephEvery is how often Ceph is asked why a drain waits: Rook looks at its budgets again after 15 or 30 seconds
// (pkg/operator/ceph/disruption/clusterdisruption/osd.go).
const cephEvery = 15 * time.Second

// keptOSDs is why Rook keeps OSDs of a node that is drained.
type keptOSDs struct {
	engine *Engine
	node   Node
	asked  time.Time
	why    string // "" while no budget keeps one
}

// look asks Ceph if a budget keeps an OSD among the pods that are left.
func (k *keptOSDs) look(ctx context.Context, left map[string]Pod, blocked map[string]error) {
	isOSD, keeps := daemonOfCeph("osd", "0123456789"), false
	for uid, pod := range left {
		keeps = keeps || isOSD(pod) && !pod.Deleting && errors.As(blocked[uid], new(BlockedError))
	}
	switch {
	case !keeps:
		k.why = ""
	case k.why == "" || time.Since(k.asked) >= cephEvery:
		k.asked, k.why = time.Now(), k.engine.whyOSDsStay(ctx, k.node)
	}
}

// whyOSDsStay says why Rook keeps the OSDs of a node: while copies are missing, it lets those of one node go, which is another one. A node
// that has left the cluster is such a node until its OSDs are purged, also with all copies.
func (e *Engine) whyOSDsStay(ctx context.Context, node Node) string {
	const rule = "Rook lets the OSDs of one node go at a time"
	ceph, err := e.Cluster.Ceph(ctx)
	if err != nil {
		return rule + ", and what Ceph lacks is not known: " + err.Error()
	}
	nodes, err := e.Cluster.Nodes(ctx)
	if err != nil {
		return rule + ", and the Kubernetes API does not answer: " + err.Error()
	}
	down := map[string][]string{}
	for _, osd := range ceph.OSDs {
		if !osd.Runs && osd.Host != node.Name {
			down[osd.Host] = append(down[osd.Host], osd.ID)
		}
	}
	var reasons []string
	for _, host := range slices.Sorted(maps.Keys(down)) {
		if _, exists := nodes[host]; exists {
			reasons = append(reasons, fmt.Sprintf("%s has OSDs that do not run: %s (if it was replaced, they are to be purged)", host,
				strings.Join(down[host], ", ")))
		} else {
			reasons = append(reasons, fmt.Sprintf("%s is no node any more and has OSDs: %s", host, PurgeOSD+strings.Join(down[host], ",")))
		}
	}
	if len(ceph.Lacks) > 0 {
		reasons = append(reasons, "Ceph says: "+list(ceph.Lacks))
	}
	if len(down) > 0 {
		return rule + ", and keeps these for now: " + list(reasons)
	}
	reasons = append(reasons, "rook-ceph-operator, if it runs, allows it within a minute once Ceph has all copies")
	return rule + "; " + list(reasons)
}
