package config

import (
	"errors"
	"io/fs"

	"github.com/slipway-platform/slipway/cluster"
)

// loadPeers loads the stack files of a mesh's other clusters, without their secrets and peers. A peer is nil if that fails.
func (d *decoder) loadPeers(mesh cluster.Mesh, tree fs.FS) []*cluster.Cluster {
	peers := make([]*cluster.Cluster, len(mesh.Peers))
	for i, stack := range mesh.Peers {
		var err error
		path := cluster.ItemPath("mesh.peers", i)
		switch peers[i], err = loadPeer(tree, stack); {
		case errors.Is(err, fs.ErrNotExist):
			d.Found(path, "write Pulumi."+stack+".yaml, or remove the peer", "%s has no stack file beside this one", stack)
		case err != nil:
			d.Found(path, "see all of them with: make config-check STACK="+stack, "%s has a stack file with problems: %v", stack, first(err))
		}
	}
	return peers
}

func loadPeer(tree fs.FS, stack string) (*cluster.Cluster, error) {
	for _, ending := range []string{".yaml", ".yml"} {
		path := "Pulumi." + stack + ending
		text, err := fs.ReadFile(tree, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return loadFor(true, tree, path, text)
	}
	return nil, fs.ErrNotExist
}

// first returns the first of several problems.
func first(err error) error {
	var all cluster.Problems
	if errors.As(err, &all) && len(all) > 0 {
		return all[0]
	}
	return err
}
