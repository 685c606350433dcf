package retire

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/nodes/turn"
)

// PreviousOutput is the environment variable in which Pulumi gives a command the standard output of its last successful run: the record of
// the nodes that were declared then. Nodes that it does not name are never removed.
const PreviousOutput = "PULUMI_COMMAND_STDOUT"

// Spec says which nodes stay in a cluster.
type Spec struct {
	turn.Declared // its nodes with their generations

	Identity  Identity       `json:"identity"`
	Snapshots snapshot.Place `json:"snapshots"` // for the one that is taken before a control plane is removed or added

	// Kubernetes is the version that replaced nodes join with; "" if none was ever replaced.
	Kubernetes string `json:"kubernetes,omitempty"`

	// Recovers means that the cluster is made anew, from a snapshot or empty, if no control plane runs etcd. Then nothing has to be
	// removed from it.
	Recovers bool `json:"recovers,omitempty"`
}

// Identity is what a cluster keeps. Its name and its number are in the identities of pods and in what its peers know of it; its virtual IP
// is in its kubeconfig, which Pulumi fetches once.
type Identity struct {
	Name string     `json:"name"`
	ID   int        `json:"id"`
	VIP  netip.Addr `json:"vip"`

	// Volumes is the clusterID in the StorageClass of a consumer of shared storage, by its storage.radosNamespace: a StorageClass does not
	// change, and no volume moves. "" means no consumer, or a record of a Slipway that did not know it.
	Volumes string `json:"volumes,omitempty"`
}

// problem returns why a cluster of this identity cannot have the declared one.
func (i Identity) problem(declared Identity) error {
	if i == (Identity{}) {
		return nil
	}
	var problems []error
	for _, one := range []struct {
		key     string
		has, is any
	}{
		{"cluster.name", i.Name, declared.Name}, {"cluster.id", i.ID, declared.ID}, {"network.vip", i.VIP, declared.VIP},
	} {
		if one.has != one.is {
			problems = append(problems, fmt.Errorf("%s: the cluster has %v, and %v is declared; declare %[2]v, or destroy the cluster first, or "+
				"make another one beside it", one.key, one.has, one.is))
		}
	}
	return errors.Join(append(problems, i.volumesProblem(declared))...)
}

// volumesProblem returns why a consumer cannot have the declared RADOS namespace. With that one's users, the volumes that exist could not
// be mounted any more.
func (i Identity) volumesProblem(declared Identity) error {
	if i.Volumes == "" || declared.Volumes == "" || i.Volumes == declared.Volumes {
		return nil
	}
	named := func(id string) string {
		if id == cluster.RookNamespace {
			return "none"
		}
		return id
	}
	remedy := "declare " + i.Volumes
	if i.Volumes == cluster.RookNamespace {
		remedy = "remove it"
	}
	return fmt.Errorf("storage.radosNamespace: the cluster has %s, and %s is declared; %s, or destroy the cluster first, or make another one "+
		"beside it", named(i.Volumes), named(declared.Volumes), remedy)
}

// atOnce is how many removals a run has time for. The next run goes on with more.
const atOnce = 10

// Longest returns how long a run may take: the return of a node that an earlier run has left cordoned, and the removals.
func (s *Spec) Longest() time.Duration {
	each := turn.SilentTimeout + 2*turn.SpareTimeout + s.LongestDrain() + turn.OffTimeout
	return s.ReturnTimeout.Duration + atOnce*each
}
