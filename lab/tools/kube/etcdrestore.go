package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// newEtcdRestoreCommand makes the data directory of a one-member etcd from a snapshot, with the checks, the order and the errors of Talos.
func newEtcdRestoreCommand() *cobra.Command {
	o := &etcdOptions{}
	var from string
	var skipHash bool
	c := &cobra.Command{
		Use:           "etcd-restore",
		Short:         "make the data directory of a one-member etcd from a snapshot",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			manager := snapshot.NewV3(zap.NewNop())
			status, err := manager.Status(from)
			if err != nil {
				return fmt.Errorf("error verifying snapshot: %w", err)
			}
			fmt.Printf("recovering etcd from snapshot: hash %08x, revision %d, total keys %d, total size %d\n", status.Hash, status.Revision,
				status.TotalKey, status.TotalSize)
			err = manager.Restore(snapshot.RestoreConfig{SnapshotPath: from, Name: o.name, OutputDataDir: o.dir, PeerURLs: []string{o.peerURL},
				InitialCluster: o.name + "=" + o.peerURL, SkipHashCheck: skipHash})
			if err != nil {
				return fmt.Errorf("error recovering from the snapshot: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&from, "snapshot", "", "the snapshot, with or without its checksum")
	c.Flags().StringVar(&o.dir, "dir", "", "data directory, which must not exist")
	c.Flags().StringVar(&o.name, "name", "etcd", "member name")
	c.Flags().StringVar(&o.peerURL, "peer-url", "http://127.0.0.1:2380", "URL to serve peers on")
	c.Flags().BoolVar(&skipHash, "skip-hash-check", false, "accept a snapshot without a checksum")
	return c
}
