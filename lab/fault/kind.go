package fault

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind names a fault as `lab fault` spells it.
type Kind string

// The faults of the hypervisor.
const (
	// ProxmoxError answers requests with an HTTP error. Target: a part of "METHOD /path", e.g. "/nodes/pve1/qemu".
	// Detail: status and reason, e.g. "500 …"; default is what pveproxy answers for a node it does not reach.
	ProxmoxError Kind = "proxmox-error"
	// ProxmoxPermission takes a privilege from every token. Target: the privilege, e.g. VM.Allocate.
	ProxmoxPermission Kind = "proxmox-permission"
	// ProxmoxTaskFails ends tasks with an error. Target: task type, e.g. qmcreate. Detail: exit status.
	ProxmoxTaskFails Kind = "proxmox-task-fails"
	// ProxmoxTaskHangs keeps tasks running until it is lifted; then they go on. Target: task type.
	ProxmoxTaskHangs Kind = "proxmox-task-hangs"
	// ProxmoxTaskSlow makes tasks take latency.SlowFactor times as long. Target: task type.
	ProxmoxTaskSlow Kind = "proxmox-task-slow"
	// DatastoreFull refuses every new volume, by the task that would make it. Target: storage.
	DatastoreFull Kind = "datastore-full"
	// VMNeverBoots leaves a VM "running" for Proxmox while nothing answers. Target: VM name.
	VMNeverBoots Kind = "vm-never-boots"
	// VMWrongMAC gives a VM's first network card another address at power-on, in its configuration too. Target: VM
	// name. Detail: the address; default: EE as fifth byte of the configured one.
	VMWrongMAC Kind = "vm-wrong-mac"
)

// The faults of Talos. Their target is a node name, which before the first configuration is that of the VM.
const (
	// StuckMaintenance: the machine takes its configuration and reboots, and is in maintenance mode again.
	StuckMaintenance Kind = "stuck-maintenance"
	// RebootLoop: the machine installs itself, and every boot from disk fails and ends in a reboot.
	RebootLoop Kind = "reboot-loop"
	// ApplyRefused: every configuration is answered InvalidArgument. Detail: the words.
	ApplyRefused Kind = "apply-refused"
	// BootstrapReplyLost: etcd is bootstrapped, and the connection breaks before the reply.
	BootstrapReplyLost Kind = "bootstrap-reply-lost"
	// EtcdMemberMissing: the node's etcd never joins; one that has joined is taken out.
	EtcdMemberMissing Kind = "etcd-member-missing"
	// EtcdLearner: the node's etcd joins as a learner and is never promoted. One that votes already goes on voting.
	EtcdLearner Kind = "etcd-learner"
)

// The faults of Kubernetes and of what runs in it.
const (
	KubeletDown      Kind = "kubelet-down"       // target: node; the Talos service fails, the Node goes NotReady
	KubeletFlaps     Kind = "kubelet-flaps"      // target: node; the Node's Ready condition comes and goes. Detail: up/down, e.g. 2s/3s
	NodeName         Kind = "node-name"          // target: node; it registers under another name, the Detail
	CiliumAgentCrash Kind = "cilium-agent-crash" // target: node; the agent's container is in CrashLoopBackOff
	CiliumHealth     Kind = "cilium-health"      // target: FROM/TO, two nodes; the first does not reach the second
	PodCIDR          Kind = "pod-cidr"           // target: node; Cilium and the node use another range. Detail: the range
	OperatorMissing  Kind = "operator-missing"   // target: cluster; no pod of cilium-operator ever starts
	ImagePull        Kind = "image-pull"         // target: part of an image reference; it cannot be pulled. Detail: containerd's words
	APIServerGone    Kind = "api-server-gone"    // target: cluster; nothing answers on port 6443
	APIServerFlaps   Kind = "api-server-flaps"   // target: cluster; port 6443 comes and goes. Detail: up/down, e.g. 2s/3s
	GitRefused       Kind = "git-refused"        // target: none; every Git request is answered 401
)

// Kinds maps every kind to what its target is ("" where it takes none), for help texts and validation.
var Kinds = map[Kind]string{
	ProxmoxError:      "part of METHOD /path",
	ProxmoxPermission: "privilege",
	ProxmoxTaskFails:  "task type",
	ProxmoxTaskHangs:  "task type",
	ProxmoxTaskSlow:   "task type",
	DatastoreFull:     "storage",
	VMNeverBoots:      "VM name",
	VMWrongMAC:        "VM name",

	StuckMaintenance:   "node name",
	RebootLoop:         "node name",
	ApplyRefused:       "node name",
	BootstrapReplyLost: "node name",
	EtcdMemberMissing:  "node name",
	EtcdLearner:        "node name",

	KubeletDown:      "node name",
	KubeletFlaps:     "node name",
	NodeName:         "node name",
	CiliumAgentCrash: "node name",
	CiliumHealth:     "pair FROM-NODE/TO-NODE",
	PodCIDR:          "node name",
	OperatorMissing:  "cluster name",
	ImagePull:        "part of an image reference",
	APIServerGone:    "cluster name",
	APIServerFlaps:   "cluster name",
	GitRefused:       "",
}

// details checks the Detail of the kinds that give it a form; of the others it is free text.
var details = map[Kind]func(string) error{
	ProxmoxError:   func(d string) error { _, _, err := SplitStatus(d); return err },
	VMWrongMAC:     form(`^(?i)[0-9a-f][02468ace](:[0-9a-f]{2}){5}$`, "no unicast MAC address, e.g. BC:24:11:00:00:FF"),
	KubeletFlaps:   func(d string) error { _, _, err := Periods(d, 0, 0); return err },
	APIServerFlaps: func(d string) error { _, _, err := Periods(d, 0, 0); return err },
}

func (f Fault) validate() error {
	target, known := Kinds[f.Kind]
	switch {
	case !known:
		return fmt.Errorf("fault %q: unknown; one of %s", f.Kind, strings.Join(names(), ", "))
	case target != "" && f.Target == "":
		return fmt.Errorf("fault %q: target missing; give a %s, or * for all", f.Kind, target)
	case target == "" && f.Target != "":
		return fmt.Errorf("fault %q: target %q given; it takes none", f.Kind, f.Target)
	}
	if check := details[f.Kind]; check != nil && f.Detail != "" {
		if err := check(f.Detail); err != nil {
			return fmt.Errorf("fault %q: detail %q: %w", f.Kind, f.Detail, err)
		}
	}
	return nil
}

// Periods reads the Detail of a fault that comes and goes: how long it is well and how long it is not, "2s/3s". An
// empty one means the defaults.
func Periods(detail string, up, down time.Duration) (time.Duration, time.Duration, error) {
	if detail == "" {
		return up, down, nil
	}
	first, second, found := strings.Cut(detail, "/")
	up, err := time.ParseDuration(first)
	down, err2 := time.ParseDuration(second)
	if err = errors.Join(err, err2); err != nil || !found || up <= 0 || down <= 0 {
		return 0, 0, errors.New("not two periods, well and broken; write e.g. 2s/3s")
	}
	return up, down, nil
}

var statusLine = regexp.MustCompile(`^([45]\d\d)(?: (.*))?$`)

// SplitStatus reads the Detail of ProxmoxError: an HTTP status with its reason, "500 …". Words without a status are a
// 500's reason.
func SplitStatus(detail string) (code int, reason string, err error) {
	if m := statusLine.FindStringSubmatch(detail); m != nil {
		_, err := fmt.Sscan(m[1], &code)
		return code, m[2], err
	}
	if regexp.MustCompile(`^\d`).MatchString(detail) {
		return 0, "", errors.New("no HTTP error; write a status from 400 to 599 and a reason, e.g. 500 Internal Server Error")
	}
	return 500, detail, nil
}

func form(pattern, problem string) func(string) error {
	re := regexp.MustCompile(pattern)
	return func(d string) error {
		if !re.MatchString(d) {
			return errors.New(problem)
		}
		return nil
	}
}

func names() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(Kinds)) {
		out = append(out, string(k))
	}
	return out
}
