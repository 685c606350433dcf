package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slipway-platform/slipway/lab/kube/process"
)

// Snapshot writes a snapshot of etcd, with the checksum that etcd adds.
func (c *ControlPlane) Snapshot(ctx context.Context, to io.Writer) error {
	client, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{"http://" + netip.AddrPortFrom(c.o.Loopback, 2379).String()}, DialTimeout: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	from, err := client.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// Database writes the file of etcd's database, which has no checksum.
func (c *ControlPlane) Database(to io.Writer) error {
	from, err := os.Open(filepath.Join(c.o.Dir, "etcd", "member", "snap", "db"))
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}

// RestoreEtcd makes etcd's data of a control plane that has not been started in dir from a snapshot. Its errors are those of Talos.
func RestoreEtcd(ctx context.Context, binary, dir string, loopback netip.Addr, snapshot []byte, skipHashCheck bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "etcd.snapshot")
	if err := os.WriteFile(file, snapshot, 0o600); err != nil {
		return err
	}
	defer os.Remove(file)
	args := []string{"etcd-restore", "--snapshot=" + file, "--dir=" + filepath.Join(dir, "etcd"),
		"--peer-url=" + etcdFlags("", loopback)["peer-url"], fmt.Sprintf("--skip-hash-check=%t", skipHashCheck)}
	var said, problem bytes.Buffer
	code, err := process.Run(ctx, process.Spec{Name: "etcd-restore", Path: binary, Args: args, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}},
		nil, &said, &problem)
	switch {
	case err != nil:
		return err
	case code != 0:
		text := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(problem.String()), "Error: "), file, "/var/lib/etcd.snapshot")
		return errors.Join(errors.New(text), os.RemoveAll(filepath.Join(dir, "etcd")))
	}
	return nil
}
