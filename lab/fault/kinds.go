package fault

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names a fault as `lab fault` spells it. Kinds describes each.
type Kind string

// The faults of Proxmox VE.
const (
	ProxmoxError      Kind = "proxmox-error"
	ProxmoxPermission Kind = "proxmox-permission"
	ProxmoxNodeGone   Kind = "proxmox-node-gone"
	ProxmoxTaskFails  Kind = "proxmox-task-fails"
	ProxmoxTaskHangs  Kind = "proxmox-task-hangs"
	ProxmoxTaskSlow   Kind = "proxmox-task-slow"
	DatastoreFull     Kind = "datastore-full"
	DatastoreSlow     Kind = "datastore-slow"
	VMNeverBoots      Kind = "vm-never-boots"
	VMWrongMAC        Kind = "vm-wrong-mac"
)

// Forgotten is the detail of ProxmoxNodeGone for a Proxmox node that the others have forgotten, with its VMs.
const Forgotten = "forgotten"

// The faults of Talos.
const (
	BootHangs          Kind = "boot-hangs"
	InstallFails       Kind = "install-fails"
	StuckMaintenance   Kind = "stuck-maintenance"
	RebootLoop         Kind = "reboot-loop"
	ApplyRefused       Kind = "apply-refused"
	NoTime             Kind = "no-time"
	BootstrapReplyLost Kind = "bootstrap-reply-lost"
	EtcdMemberMissing  Kind = "etcd-member-missing"
	EtcdLearner        Kind = "etcd-learner"
	UpgradeFails       Kind = "upgrade-fails"
)

// The faults of Kubernetes, of what runs in it, and of the Git host.
const (
	KubeletDown      Kind = "kubelet-down"
	KubeletFlaps     Kind = "kubelet-flaps"
	NodeName         Kind = "node-name"
	ImagePull        Kind = "image-pull"
	CiliumAgentCrash Kind = "cilium-agent-crash"
	CiliumHealth     Kind = "cilium-health"
	PodCIDR          Kind = "pod-cidr"
	OperatorMissing  Kind = "operator-missing"
	APIServerGone    Kind = "api-server-gone"
	APIServerFlaps   Kind = "api-server-flaps"
	MeshGone         Kind = "mesh-gone"
	CephGone         Kind = "ceph-gone"
	CSIDriverMissing Kind = "csi-driver-missing"
	GitRefused       Kind = "git-refused"
	Git5xx           Kind = "git-5xx"
	GitMoves         Kind = "git-moves"
)

// The faults of what provides secrets.
const (
	ConnectRefused Kind = "connect-refused"
	ConnectSlow    Kind = "connect-slow"
	Connect5xx     Kind = "connect-5xx"
	SealedKeyLate  Kind = "sealed-key-late"
)

// Groups of kinds, one table each in docs/lab.md.
const (
	groupProxmox    = "Proxmox VE"
	groupTalos      = "Talos"
	groupKubernetes = "Kubernetes and Git"
	groupSecrets    = "1Password Connect and sealed-secrets"
)

// Description says what a kind of fault does. The tables in docs/lab.md, the help of `lab fault` and the validation of
// a fault are made from it.
type Description struct {
	Kind    Kind
	Group   string
	Target  string             // what the target is, e.g. "node"; empty: the kind takes no target
	Within  bool               // the target is a part of the name that a simulator asks for, not the whole name
	WhenOn  string             // what happens while the fault is on, Markdown
	WhenOff string             // what happens when the fault is switched off, Markdown
	detail  func(string) error // checks the Detail; nil: free text
}

// Kinds describes every kind, in the order of docs/lab.md.
var Kinds = []Description{
	{
		Kind: ProxmoxError, Group: groupProxmox, Target: "part of `METHOD /path`", Within: true, detail: isStatusLine,
		WhenOn: "requests whose method and path contain the target get an HTTP error; `--detail \"500 words\"` gives it; default: " +
			"`595 No route to host`, which pveproxy answers for a node that it cannot reach",
		WhenOff: "at once",
	},
	{
		Kind: ProxmoxPermission, Group: groupProxmox, Target: "privilege",
		WhenOn: "every token lacks this privilege: `403 Permission check failed (/vms/1111, VM.Allocate)`; " +
			"lists omit what the token may not see",
		WhenOff: "at once",
	},
	{
		Kind: ProxmoxNodeGone, Group: groupProxmox, Target: "Proxmox node",
		detail: isForm("^"+Forgotten+"$", "neither empty nor "+Forgotten),
		WhenOn: "as if its server had burnt, some minutes ago: its VMs end, the Proxmox node is `offline`, all that asks it gets " +
			"`595 No route to host`, and its VMs and storages stay in the list of resources, as `unknown`. `--detail " + Forgotten + "`: as after " +
			"`pvecm delnode`, and with the configurations of its VMs removed: nothing lists it or its VMs, and its name is unknown",
		WhenOff: "the Proxmox node is back, with VMs that are off, or without those that were forgotten",
	},
	{
		Kind: ProxmoxTaskFails, Group: groupProxmox, Target: "task type",
		WhenOn:  "the task ends with an error; `--detail` is its text",
		WhenOff: "at once",
	},
	{
		Kind: ProxmoxTaskHangs, Group: groupProxmox, Target: "task type",
		WhenOn:  "the task stays `running` and keeps the lock of its VM",
		WhenOff: "the task does its work and ends",
	},
	{
		Kind: ProxmoxTaskSlow, Group: groupProxmox, Target: "task type",
		WhenOn:  "the task takes 20 times as long (`SlowFactor` in `lab/latency`)",
		WhenOff: "at once",
	},
	{
		Kind: DatastoreFull, Group: groupProxmox, Target: "storage",
		WhenOn: "a task that creates a volume there fails with the error of that storage type; its VM is not created, " +
			"or its disk stays where it was",
		WhenOff: "at once",
	},
	{
		Kind: DatastoreSlow, Group: groupProxmox, Target: "storage", detail: isDuration,
		WhenOn: "each new volume there takes 4 s, or the time of `--detail`, with the storage's lock: of several VMs that are created at " +
			"once, the last ones fail with `got lock request timeout` (shared storage) or `got timeout`, as after 10 s in Proxmox VE",
		WhenOff: "at the next volume",
	},
	{
		Kind: VMNeverBoots, Group: groupProxmox, Target: "VM",
		WhenOn:  "Proxmox reports the VM as running, but nothing in it answers",
		WhenOff: "the VM boots",
	},
	{
		Kind: VMWrongMAC, Group: groupProxmox, Target: "VM",
		detail: isForm(`^(?i)[0-9a-f][02468ace](:[0-9a-f]{2}){5}$`, "no unicast MAC address, e.g. BC:24:11:00:00:FF"),
		WhenOn: "at its next start the first network card has another MAC address, also in the VM's configuration, " +
			"as if somebody had edited it; " +
			"`--detail` gives the address; default: the configured one with `EE` as fifth byte. The node keeps the address from cloud-init, " +
			"but lacks what its configuration selects by MAC address, for example the virtual IP",
		WhenOff: "the next run sees the difference and corrects it; by hand: write `net0`, reboot the VM",
	},

	{
		Kind: BootHangs, Group: groupTalos, Target: "VM", detail: isForm(`^[1-9]\d?$`, "no number of boots; write e.g. 2"),
		WhenOn: "a boot from the image hangs once the VM has its address: port 50000 refuses connections for ever. A reset boots it again; " +
			"`--detail 2`: the first two boots hang, instead of one",
		WhenOff: "the next boot goes on; one that hangs stays so",
	},
	{
		Kind: InstallFails, Group: groupTalos, Target: "VM",
		WhenOn: "the installer ends with exit code 1 after it has partitioned the disk. The VM reboots from its image, which finds Talos's " +
			"partitions and halts: it has its address, and port 50000 refuses connections; `--detail` is the error",
		WhenOff: "nothing: the partitions stay on the disk until the VM is replaced",
	},
	{
		Kind: StuckMaintenance, Group: groupTalos, Target: "node",
		WhenOn:  "the node accepts its configuration, installs, reboots, and is in maintenance mode again",
		WhenOff: "the node reboots from its disk, with its configuration, as after a reset by the person who repairs it",
	},
	{
		Kind: RebootLoop, Group: groupTalos, Target: "node",
		WhenOn: "the node is installed, but each boot from disk fails and ends in a reboot; " +
			"nothing answers on port 50000; `--detail` is the error",
		WhenOff: "the next boot succeeds",
	},
	{
		Kind: ApplyRefused, Group: groupTalos, Target: "node",
		WhenOn:  "every configuration is answered with InvalidArgument; `--detail` is the text",
		WhenOff: "at once",
	},
	{
		Kind: NoTime, Group: groupTalos, Target: "node",
		WhenOn: "no time server answers a node that boots: its etcd and kubelet stay in the state Waiting, with `Waiting for time sync`. A " +
			"node that has the time keeps it",
		WhenOff: "at once",
	},
	{
		Kind: BootstrapReplyLost, Group: groupTalos, Target: "node",
		WhenOn:  "etcd is bootstrapped, but the connection breaks before the reply; a second Bootstrap is answered with AlreadyExists",
		WhenOff: "–",
	},
	{
		Kind: EtcdMemberMissing, Group: groupTalos, Target: "node",
		WhenOn: "etcd of the node stays in the state Preparing, and its log says why; a node that is a member is removed from etcd, " +
			"unless etcd would lose its quorum",
		WhenOff: "etcd of the node joins",
	},
	{
		Kind: EtcdLearner, Group: groupTalos, Target: "node",
		WhenOn:  "etcd of the node joins as a learner and is never promoted, and no other node can join; a voting member is left alone",
		WhenOff: "the learner is promoted",
	},
	{
		Kind: UpgradeFails, Group: groupTalos, Target: "node",
		WhenOn: "a version of Talos that the node has never run does not boot: after an upgrade, the boot fails, and the node " +
			"reboots into the former version; `--detail` is the error",
		WhenOff: "at once; the node stays at the version that it runs",
	},

	{
		Kind: KubeletDown, Group: groupKubernetes, Target: "node",
		WhenOn: "the kubelet ends again and again: its Talos service is `Waiting` and says why, the Node becomes NotReady; " +
			"`--detail` is the error",
		WhenOff: "the service starts",
	},
	{
		Kind: KubeletFlaps, Group: groupKubernetes, Target: "node", detail: isPeriods,
		WhenOn: "the condition Ready becomes False (`KubeletNotReady`, `PLEG is not healthy: …`) and True again and again; " +
			"`--detail 2s/3s`: True for 2 s, False for 3 s",
		WhenOff: "Ready stays True",
	},
	{
		Kind: NodeName, Group: groupKubernetes, Target: "node",
		WhenOn: "the kubelet registers under another name, `--detail` or `talos-XXXXXX`; `talosctl logs kubelet` shows it; " +
			"a Node that already has the right name is left alone",
		WhenOff: "the kubelet registers under the right name; the wrong Node stays until somebody deletes it",
	},
	{
		Kind: ImagePull, Group: groupKubernetes, Target: "part of an image reference", Within: true,
		WhenOn: "pulling the image fails on nodes that do not have it yet, with `not found` or the text of `--detail`: " +
			"ErrImagePull, ImagePullBackOff, events; the back-off begins at 0.5 s; so do Talos's installer, kubelet and static pods",
		WhenOff: "the next attempt starts within a second",
	},
	{
		Kind: CiliumAgentCrash, Group: groupKubernetes, Target: "node",
		WhenOn: "the container of the Cilium agent is in CrashLoopBackOff; the node stays Ready, cilium-operator taints it, " +
			"new pods get no network",
		WhenOff: "the agent starts again within a second",
	},
	{
		Kind: CiliumHealth, Group: groupKubernetes, Target: "FROM/TO, two nodes",
		WhenOn: "from the next round of its probes on, the agent on FROM does not reach TO, neither host nor endpoint, in both address families; " +
			"`--detail` is the error",
		WhenOff: "with the agent's next round of probes, a few seconds later",
	},
	{
		Kind: PodCIDR, Group: groupKubernetes, Target: "node",
		WhenOn: "Cilium on the node uses another pod range: `--detail 10.99.0.0/16`, or a `/24` for this node; " +
			"the range shows in the CiliumNode, " +
			"the agent's status and the addresses of new pods",
		WhenOff: "at once; pods keep their address until they are recreated",
	},
	{
		Kind: OperatorMissing, Group: groupKubernetes, Target: "cluster",
		WhenOn: "the pods of cilium-operator are deleted, and new ones stay Pending with the scheduler's own message, because the pod " +
			"`keeps-cilium-operator-out` has an anti-affinity to them. On a new cluster the agents then wait for Cilium's CRDs",
		WhenOff: "that pod and the pending pods are deleted; their controller creates new ones at once",
	},
	{
		Kind: APIServerGone, Group: groupKubernetes, Target: "cluster",
		WhenOn:  "port 6443 refuses connections",
		WhenOff: "at once",
	},
	{
		Kind: APIServerFlaps, Group: groupKubernetes, Target: "cluster", detail: isPeriods,
		WhenOn:  "port 6443 refuses connections and accepts them again and again; `--detail 2s/3s`: accepts for 2 s, refuses for 3 s",
		WhenOff: "at once",
	},
	{
		Kind: MeshGone, Group: groupKubernetes, Target: "cluster",
		WhenOn: "the load-balancer address of the cluster's mesh API server does not answer: `no route to host`, as if no node announced it; " +
			"connections to it break",
		WhenOff: "at once; kvstoremesh of the peers connects again after its own back-off",
	},
	{
		Kind: CephGone, Group: groupKubernetes, Target: "cluster",
		WhenOn: "the monitors of the cluster's Ceph do not answer, as if the machines' network were interrupted; its pods stay ready. " +
			"Calls to the CSI driver wait until their deadline, in the cluster and in its consumers",
		WhenOff: "waiting calls go on at once; csi-provisioner and kubelets try again after their own back-off",
	},
	{
		Kind: CSIDriverMissing, Group: groupKubernetes, Target: "node",
		WhenOn: "the container driver-registrar of the CSI driver's pod on the node is in CrashLoopBackOff, and the driver is not registered " +
			"with the kubelet: the CSINode has none, and volumes cannot be mounted there",
		WhenOff: "the container starts again within a second",
	},
	{
		Kind: GitRefused, Group: groupKubernetes,
		WhenOn:  "every Git request over HTTPS is answered with 401, and over SSH every key is refused",
		WhenOff: "at once",
	},
	{
		Kind: Git5xx, Group: groupKubernetes, detail: isStatusLine,
		WhenOn: "every Git request over HTTPS is answered with `500 Internal Server Error`, or the status of `--detail \"503 words\"`; " +
			"over SSH the connection ends before the repository is sent",
		WhenOff: "at once; source-controller asks again after its own back-off",
	},
	{
		Kind: GitMoves, Group: groupKubernetes, detail: isDuration,
		WhenOn: "every 10 s, or the time of `--detail`, there is another commit on top of the checkout's HEAD, at most 100; " +
			"the commits change no file",
		WhenOff: "the branch is the checkout's HEAD again, as after a forced push",
	},

	{
		Kind: ConnectRefused, Group: groupSecrets, Target: "cluster",
		WhenOn:  "the ports of 1Password Connect refuse connections, and its pods are not ready",
		WhenOff: "at once; external-secrets asks again after its own back-off",
	},
	{
		Kind: ConnectSlow, Group: groupSecrets, Target: "cluster", detail: isDuration,
		WhenOn:  "1Password Connect answers each request for vaults and items after 30 s, or after the time of `--detail`, e.g. `5s`",
		WhenOff: "at once, waiting requests too",
	},
	{
		Kind: Connect5xx, Group: groupSecrets, Target: "cluster", detail: isStatusLine,
		WhenOn: "1Password Connect answers requests for vaults and items with `500 Internal Server Error`, " +
			"or the status of `--detail \"503 words\"`; it stays healthy and ready",
		WhenOff: "at once; external-secrets asks again after its own back-off",
	},
	{
		Kind: SealedKeyLate, Group: groupSecrets, Target: "cluster",
		WhenOn: "a controller of sealed-secrets that starts does not find the keys that exist, as if they came after it, " +
			"and makes one of its own; the label that it looks for is back on the keys as soon as it has done so",
		WhenOff: "the next start of the controller finds all keys; the key that it made stays",
	},
}

// describe returns the description of a kind.
func describe(kind Kind) (Description, bool) {
	i := slices.IndexFunc(Kinds, func(d Description) bool { return d.Kind == kind })
	if i < 0 {
		return Description{}, false
	}
	return Kinds[i], true
}

// matches tells whether f is on for something with one of these names.
func (f Fault) matches(names []string) bool {
	if f.Target == "*" || f.Target == "" {
		return true
	}
	d, _ := describe(f.Kind)
	return slices.ContainsFunc(names, func(name string) bool {
		return name == f.Target || d.Within && strings.Contains(name, f.Target)
	})
}

func (f Fault) validate() error {
	d, known := describe(f.Kind)
	switch {
	case !known:
		return fmt.Errorf("fault %q: unknown; one of %s", f.Kind, strings.Join(names(), ", "))
	case d.Target != "" && f.Target == "":
		return fmt.Errorf("fault %q: target missing; give a %s, or * for all", f.Kind, d.Target)
	case d.Target == "" && f.Target != "":
		return fmt.Errorf("fault %q: target %q given; it takes none", f.Kind, f.Target)
	}
	if d.detail != nil && f.Detail != "" {
		if err := d.detail(f.Detail); err != nil {
			return fmt.Errorf("fault %q: detail %q: %w", f.Kind, f.Detail, err)
		}
	}
	return nil
}

func names() []string {
	var out []string
	for _, d := range Kinds {
		out = append(out, string(d.Kind))
	}
	slices.Sort(out)
	return out
}
