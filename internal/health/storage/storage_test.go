package storage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/externalsecrets"
	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/healthtest"
)

const rbd = "rook-ceph.rbd.csi.ceph.com"

func declared() *Spec {
	spec := &Spec{
		Target:  health.Target{Cluster: "infra", Kubeconfig: "k"},
		Drivers: []string{"rook-ceph.cephfs.csi.ceph.com"}, Nodes: []string{"infra-worker-1", "infra-worker-2"}, Classes: []string{"ceph-block"},
	}
	spec.SetDefaults()
	return spec
}

// working is a cluster whose storage works.
func working() *Cluster {
	drivers := []string{"rook-ceph.cephfs.csi.ceph.com", rbd}
	return &Cluster{
		Nodes: health.Seen[Node]{Synced: true, Items: []Node{
			{Name: "infra-cp-1"}, {Name: "infra-worker-1", Drivers: drivers}, {Name: "infra-worker-2", Drivers: drivers}}},
		Classes: health.Seen[Class]{Synced: true, Items: []Class{{Name: "ceph-block", Driver: rbd}, {Name: "local", Driver: "local"}}},
		Volumes: map[string]Volume{
			"ceph-block": {Job: "slipway-storage-1", Pod: "slipway-storage-1-abc", Claim: "slipway-storage-1-abc-probe", Done: true}},
	}
}

// connect declares a connection, whose ExternalSecret has a status, and about which there may be a warning.
func connect(spec *Spec, seen *Cluster, ready, warning string) {
	spec.Connection = &Connection{Provider: "infra", Namespace: "flux-system", ExternalSecret: "storage-monitors"}
	object := externalsecrets.Object{
		Kind: externalsecrets.Secret, Namespace: "flux-system", Name: "storage-monitors", Ready: ready, Current: true,
	}
	seen.Connection.Secrets = health.Seen[externalsecrets.Object]{Synced: true, Items: []externalsecrets.Object{object}}
	seen.Connection.Warnings = health.Seen[externalsecrets.Warning]{Synced: true}
	if warning != "" {
		seen.Connection.Warnings.Items = []externalsecrets.Warning{
			{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Text: "event UpdateFailed: " + warning, Time: 1},
		}
	}
}

// tried sets what is known of the volume.
func (seen *Cluster) tried(change func(*Volume)) {
	volume := seen.Volumes["ceph-block"]
	volume.Done = false
	change(&volume)
	seen.Volumes["ceph-block"] = volume
}

var states = map[string]func(*Spec, *Cluster){
	"no-nodes-declared":    func(spec *Spec, _ *Cluster) { spec.Nodes = nil },
	"no-class-declared":    func(spec *Spec, _ *Cluster) { spec.Classes = nil },
	"volumes-are-retained": func(_ *Spec, seen *Cluster) { seen.Classes.Items[0].Retain, seen.Volumes = true, nil },
	"after-a-failure":      func(_ *Spec, seen *Cluster) { seen.tried(func(v *Volume) { v.Done, v.Failed = true, "too late" }) },
	"connected":            func(spec *Spec, seen *Cluster) { connect(spec, seen, "True", "") },
	"provider-absent": func(spec *Spec, seen *Cluster) {
		connect(spec, seen, "False", "key not found in 1Password Vaults: infra-storage in: map[storage:1]")
		seen.Nodes.Items, seen.Volumes = nil, nil
	},
	"another-node-without-it": func(_ *Spec, seen *Cluster) { seen.Nodes.Items = append(seen.Nodes.Items, Node{Name: "stranger"}) },
}

var faults = map[string]func(*Spec, *Cluster){
	"class-missing":        func(_ *Spec, seen *Cluster) { seen.Classes.Items = seen.Classes.Items[1:] },
	"no-class":             func(_ *Spec, seen *Cluster) { seen.Classes.Items = nil },
	"no-class-and-drivers": func(spec *Spec, seen *Cluster) { seen.Classes.Items, spec.Drivers = nil, nil },
	"classes-forbidden": func(_ *Spec, seen *Cluster) {
		seen.Classes = health.Seen[Class]{Err: &health.Broken{Reason: "forbidden", Hopeless: true}}
	},
	"driver-missing-on-one-node": func(_ *Spec, seen *Cluster) {
		seen.Nodes.Items[2].Drivers = seen.Nodes.Items[2].Drivers[:1]
		seen.Volumes = nil
	},
	"no-driver-on-a-node": func(_ *Spec, seen *Cluster) { seen.Nodes.Items[1].Drivers, seen.Volumes = nil, nil },
	"node-without-csinode": func(_ *Spec, seen *Cluster) {
		seen.Nodes.Items, seen.Volumes = seen.Nodes.Items[:2], nil
	},
	"driver-on-no-node": func(spec *Spec, seen *Cluster) {
		spec.Nodes = nil
		for i := range seen.Nodes.Items {
			seen.Nodes.Items[i].Drivers = nil
		}
		seen.Volumes = nil
	},
	"csinodes-forbidden": func(_ *Spec, seen *Cluster) {
		seen.Nodes, seen.Volumes = health.Seen[Node]{Err: &health.Broken{Reason: "forbidden"}}, nil
	},
	"connection-not-declared-to-the-cluster": func(spec *Spec, seen *Cluster) {
		connect(spec, seen, "True", "")
		seen.Connection.Secrets.Items, seen.Volumes = nil, nil
	},
	"connection-not-synced-yet": func(spec *Spec, seen *Cluster) {
		connect(spec, seen, "", "")
		seen.Volumes = nil
	},
	"vault-refused": func(spec *Spec, seen *Cluster) {
		connect(spec, seen, "False", "error listing items: status 403: Authorization: vault is not in scope")
		seen.Volumes = nil
	},
	"claim-not-bound": func(_ *Spec, seen *Cluster) {
		seen.tried(func(v *Volume) {
			v.Doing = "the claim is not bound: 0/5 nodes are available: pod has unbound immediate PersistentVolumeClaims"
		})
	},
	"volume-not-read": func(_ *Spec, seen *Cluster) {
		seen.tried(func(v *Volume) { v.Failed = "the pod could not read the volume on infra-worker-1: Error: exit code 1" })
	},
	"volume-of-an-earlier-provider": func(spec *Spec, seen *Cluster) {
		connect(spec, seen, "True", "")
		seen.tried(func(v *Volume) { v.Failed, v.Doing = "the Job has failed: DeadlineExceeded", "the claim is not bound" })
	},
	"tried-again": func(_ *Spec, seen *Cluster) {
		seen.tried(func(v *Volume) { v.Failed, v.Doing = "the Job has failed: DeadlineExceeded", "the Job has no pod yet" })
	},
	"volume-not-removed": func(_ *Spec, seen *Cluster) {
		seen.tried(func(v *Volume) { v.Doing = "was written and read, and volume pvc-1 is being removed" })
	},
	"looked-at-once": func(spec *Spec, seen *Cluster) {
		spec.Once = true
		seen.tried(func(v *Volume) { v.Failed = "the Job has failed: DeadlineExceeded" })
	},
}

func TestStorage_HoldsIfAVolumeOfEachClassWorked(t *testing.T) {
	results := Evaluate(declared(), working())
	assert.True(t, health.Hold(results), "%+v", results)
}

func last(results []health.Result) health.Result { return results[len(results)-1] }

func TestStorage_DoesNotHoldBeforeAnythingWasRead(t *testing.T) {
	results := Evaluate(declared(), &Cluster{})
	assert.False(t, health.Hold(results))
	require.Len(t, results, len(Checks))
	assert.True(t, results[0].Unseen && results[2].Unseen, "nothing is printed before the first look")
	assert.True(t, results[3].Blocked)

	spec, seen := declared(), working()
	seen.Volumes = nil
	assert.True(t, last(Evaluate(spec, seen)).Unseen, "no attempt has begun")
	seen = working()
	seen.tried(func(v *Volume) { v.Doing = "the Job has no pod yet" })
	assert.False(t, last(Evaluate(spec, seen)).Unseen)
	spec.Once = true
	assert.True(t, last(Evaluate(spec, seen)).Unseen, "a look ends after an attempt, not in the middle of it")
}

// The golden file has the report of storage that works, and for each state and fault the lines that differ from it.
func TestStorage_AFailureNamesNodeClassAndReason(t *testing.T) {
	healthtest.All(t, "storage", "(working)", func() (*Spec, *Cluster) { return declared(), working() }, Evaluate, states, faults)
}

// A destroyed provider leaves its item in the vault, and a consumer that comes up before the next one connects to what is gone.
func TestStorage_AFailedVolumeOfAConsumerMayBeThatOfAnEarlierProvider(t *testing.T) {
	const says = "the item of infra may be of an earlier infra"
	spec, seen := declared(), working()
	faults["volume-of-an-earlier-provider"](spec, seen)
	assert.Contains(t, last(Evaluate(spec, seen)).Reason, says)
	spec.Connection = nil
	assert.NotContains(t, last(Evaluate(spec, seen)).Reason, says)
	spec, seen = declared(), working()
	connect(spec, seen, "True", "")
	seen.tried(func(v *Volume) { v.Doing = "the claim is not bound" })
	assert.NotContains(t, last(Evaluate(spec, seen)).Reason, says, "the first attempt goes on")
}

func TestStorage_AVolumeIsTriedOnceItsDriverIsOnEveryNode(t *testing.T) {
	may := func(change func(*Spec, *Cluster)) bool {
		spec, seen := declared(), working()
		change(spec, seen)
		_, may := seen.May(spec, "ceph-block")
		return may
	}
	assert.True(t, may(func(*Spec, *Cluster) {}))
	for _, name := range []string{"class-missing", "driver-missing-on-one-node", "csinodes-forbidden"} {
		assert.False(t, may(faults[name]), name)
	}
	assert.False(t, may(states["volumes-are-retained"]), "the probe's volume would stay")
	assert.True(t, may(states["connected"]))
	for _, name := range []string{"connection-not-synced-yet", "vault-refused"} {
		assert.False(t, may(faults[name]), name)
	}
	assert.False(t, may(states["provider-absent"]), "the claim would wait for a provider that may never come")
}

func TestStorage_ALocalVolumeIsTriedWithoutADriver(t *testing.T) {
	spec, seen := declared(), working()
	spec.Drivers, spec.Classes = nil, []string{"local-path"}
	seen.Classes.Items = []Class{{Name: "local-path", Driver: cluster.LocalProvisioner}}
	_, may := seen.May(spec, "local-path")
	assert.True(t, may)
	assert.False(t, health.Hold(Evaluate(spec, seen)), "the volume was not tried yet")
	seen.Volumes = map[string]Volume{"local-path": {Done: true}}
	assert.True(t, health.Hold(Evaluate(spec, seen)))
}

func TestSpec_NamesEveryProblemAndComesBackAsItWasEncoded(t *testing.T) {
	for _, problem := range []string{"cluster: is empty", "kubeconfig: is empty", "classes: is empty"} {
		require.ErrorContains(t, new(Spec).Validate(), problem)
	}
	twice := declared()
	twice.Classes, twice.Nodes, twice.Attempt = []string{"a", "a"}, []string{""}, -1
	for _, problem := range []string{"classes[1]: a is there twice", "nodes[0]: is empty", "attempt: -1ns is negative"} {
		require.ErrorContains(t, twice.Validate(), problem)
	}
	text, err := probe.Encode(declared())
	require.NoError(t, err)
	read := new(Spec)
	require.NoError(t, probe.Read(strings.NewReader(text), read))
	assert.Equal(t, declared(), read)
	public, err := health.Public(declared())
	require.NoError(t, err)
	assert.NotContains(t, public, "kubeconfig")
}
