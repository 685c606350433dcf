package faults

// Lanes are the cases of the matrix in the order in which they run. In one lane a cluster is created, from VMs to Flux, and the faults
// are switched on one after the other, each at its moment. Each run must get past the faults that have been switched off; the last run of
// a lane completes. A fault that must be on from the first boot is the first case of its lane that stops after the boot.
var Lanes = [][]Case{
	{
		{
			Name: "Proxmox answers 500", Moment: BeforeApply,
			Kind: "proxmox-error", Target: "POST /nodes/pve1/qemu", Detail: "500 got timeout",
			Up: Stops, Says: `500`, Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "a Proxmox task hangs", Moment: BeforeApply,
			Kind: "proxmox-task-hangs", Target: "qmcreate",
			Up: Waits,
		},
		{
			Name: "an etcd member is missing", Moment: AfterBootstrap,
			Kind: "etcd-member-missing", Target: "infra-cp-3",
			Up: Stops, Says: `infra-cp-3: is no member of etcd`, Before: "slipway:core:CRDs",
		},
		{
			Name: "an image cannot be pulled", Moment: AfterCilium,
			Kind: "image-pull", Target: "cilium/cilium",
			Up: Stops, Says: `(ImagePullBackOff|ErrImagePull)`, Before: "slipway:core:CoreServices",
		},
		{
			Name: "kubelet is down on a worker", Moment: AtTheGate,
			Kind: "kubelet-down", Target: "infra-worker-1",
			Up: Stops, Says: `infra-worker-1: kubelet`, Before: "slipway:core:CoreServices",
		},
	},
	{
		{
			Name: "a Proxmox task fails", Moment: BeforeApply,
			Kind: "proxmox-task-fails", Target: "qmcreate", Detail: "lvcreate 'pve/vm-1111-disk-0' error: volume group pve not found",
			Up: Stops, Says: `volume group pve not found`, Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "a node refuses its configuration", Moment: BeforeApply,
			Kind: "apply-refused", Target: "infra-worker-2", Detail: "install disk /dev/sda is not there",
			Up: Stops, Says: `install disk /dev/sda is not there`, Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "an etcd learner is never promoted", Moment: AfterBootstrap,
			Kind: "etcd-learner", Target: "infra-cp-2",
			Up: Stops, Says: `infra-cp-2: is a learner of etcd`, Before: "slipway:core:CRDs",
		},
		{
			Name: "the operator does not run", Moment: AfterCilium,
			Kind: "operator-missing", Target: "infra",
			Up: Stops, Says: `cilium-operator`, Before: "slipway:core:CoreServices",
		},
		{
			Name: "an agent crashes on one node", Moment: AtTheGate,
			Kind: "cilium-agent-crash", Target: "infra-cp-2",
			Up: Stops, Says: `infra-cp-2: .*CrashLoopBackOff`, Before: "slipway:core:CoreServices",
		},
	},
	{
		{
			Name: "the token lacks a permission", Moment: BeforeApply,
			Kind: "proxmox-permission", Target: "VM.Allocate",
			Up: Stops, Says: `Permission check failed.*VM\.Allocate`, Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "a VM does not boot", Moment: BeforeApply,
			Kind: "vm-never-boots", Target: "infra-worker-1",
			Up: Waits,
		},
		{
			Name: "a VM got another MAC address", Moment: AfterApply,
			Kind: "vm-wrong-mac", Target: "infra-worker-2",
			Up: GoesOn,
		},
		{
			Name: "Cilium uses another pod CIDR", Moment: AfterCilium,
			Kind: "pod-cidr", Target: "infra-worker-2", Detail: "10.99.1.0/24",
			Up: Stops, Says: `infra-worker-2: .*10\.99\.1\.0/24`, Before: "slipway:core:CoreServices",
		},
		{
			Name: "one node does not reach another", Moment: AtTheGate,
			Kind: "cilium-health", Target: "infra-cp-1/infra-worker-2",
			Up: Stops, Says: `infra-cp-1: does not reach .*infra-worker-2`, Before: "slipway:core:CoreServices",
		},
	},
	{
		{
			Name: "the datastore is full", Moment: BeforeApply,
			Kind: "datastore-full", Target: "local-lvm",
			Up: Stops, Says: `free space in thin pool pve/data reached threshold`, Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "VMs wait in vain for the lock of a slow datastore", Moment: BeforeApply,
			Kind: "datastore-slow", Target: "local-lvm", Detail: "12s", // longer than Proxmox waits, because a host makes two VMs at most
			Up: Stops, Says: `can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout`,
			Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "the installer cannot be pulled", Moment: BeforeApply,
			Kind: "image-pull", Target: "nocloud-installer",
			Up: Stops, Says: `infra-cp-1 is in maintenance mode, without a configuration`,
			Before: "slipway:readiness:ReadinessGate",
		},
		{
			Name: "the reply to the bootstrap is lost", Moment: AfterApply,
			Kind: "bootstrap-reply-lost", Target: "infra-cp-1",
			Up: GoesOn,
		},
		{
			Name: "a node has another name", Moment: AfterBootstrap,
			Kind: "node-name", Target: "infra-worker-1", Detail: "localhost",
			Up: Stops, Says: `is registered as localhost instead of infra-worker-1`, Before: "slipway:core:CRDs",
			Repair: "kubectl --context=admin@infra delete node localhost", // otherwise up waits for the pods of DaemonSets on it
		},
		{
			Name: "a node is Ready now and then", Moment: AtTheGate,
			Kind: "kubelet-flaps", Target: "infra-worker-2",
			Detail: "200ms/2s", // the working phase is shorter than the gate's window, so that no gate sees only that phase
			Up:     Stops, Says: `flapped \d+ times`, Before: "slipway:core:CoreServices",
		},
		{
			Name: "Git refuses the credentials", Moment: AfterTheGate,
			Kind: "git-refused",
			Up:   Stops, Says: `GitRepository.*flux-system`, Before: "",
		},
	},
	{
		{
			Name: "a node stays in maintenance mode", Moment: AfterApply,
			Kind: "stuck-maintenance", Target: "infra-worker-1",
			Up: Stops, Says: `infra-worker-1`, Before: "slipway:core:CRDs",
		},
		{
			Name: "the image of a core service cannot be pulled", Moment: AfterTheGate,
			Kind: "image-pull", Target: "cert-manager-webhook",
			Up: Stops, Says: `cert-manager/cert-manager-webhook: .*(ImagePullBackOff|ErrImagePull)`, Before: "slipway:gitops:GitOpsHandover",
		},
		{
			Name: "the image of a controller of Flux cannot be pulled", Moment: AfterTheGate,
			Kind: "image-pull", Target: "source-controller",
			Up: Stops, Says: `Deployment flux-system/source-controller: .*(ImagePullBackOff|ErrImagePull)`, Before: "",
		},
		{
			Name: "the Git host answers 500", Moment: AfterTheGate,
			Kind: "git-5xx",
			Up:   Stops, Says: `GitRepository flux-system/flux-system: .*500`, Before: "",
		},
		{
			Name: "somebody pushes again and again", Moment: AfterTheGate,
			Kind: "git-moves", Detail: "10s",
			Up: GoesOn,
		},
	},
	{
		{
			Name: "an installation reboots for ever", Moment: AfterApply,
			Kind: "reboot-loop", Target: "infra-worker-2",
			Up: Stops, Says: `infra-worker-2`, Before: "slipway:core:CRDs",
		},
		{
			Name: "the API server comes and goes", Moment: AfterBootstrap,
			Kind: "api-server-flaps", Target: "infra", Detail: "2s/3s",
			Up: Stops, Says: `(connection refused|flapped \d+ times)`, Before: "slipway:core:CoreServices",
		},
		{
			Name: "the image of Sealed Secrets cannot be pulled", Moment: AfterTheGate,
			Kind: "image-pull", Target: "sealed-secrets-controller",
			Up: Stops, Says: `kube-system/sealed-secrets-controller: .*(ImagePullBackOff|ErrImagePull)`, Before: "slipway:gitops:GitOpsHandover",
		},
		{
			Name: "Sealed Secrets does not find its key", Moment: AfterTheGate,
			Kind: "sealed-key-late", Target: "infra",
			Up: Stops, Says: `SealedSecret kube-system/slipway-probe: .*no key could decrypt secret`, Before: "slipway:gitops:GitOpsHandover",
			Repair: "kubectl --context=admin@infra -n kube-system rollout restart deployment sealed-secrets-controller",
		},
	},
	{
		{
			Name: "a boot from the image hangs", Moment: BeforeApply,
			Kind: "boot-hangs", Target: "infra-worker-1",
			Up: Waits, // for two minutes, until it resets the VM: the end of the fault does not end the hanging boot
		},
		{
			Name: "the image of 1Password Connect cannot be pulled", Moment: AfterTheGate,
			Kind: "image-pull", Target: "connect-api",
			Up: Stops, Says: `external-secrets/onepassword-connect: .*(ImagePullBackOff|ErrImagePull)`, Before: "slipway:gitops:GitOpsHandover",
		},
		{
			Name: "1Password Connect refuses connections", Moment: AfterTheGate,
			Kind: "connect-refused", Target: "infra",
			Up: Stops, Says: `external-secrets/onepassword-connect: .*0 of 1 pods are Ready`, Before: "slipway:gitops:GitOpsHandover",
		},
		{
			Name: "the image of External Secrets Operator cannot be pulled", Moment: AfterTheGate,
			Kind: "image-pull", Target: "external-secrets/external-secrets",
			Up: Stops, Says: `external-secrets/external-secrets(-webhook|-cert-controller)?: .*(ImagePullBackOff|ErrImagePull)`,
			Before: "slipway:gitops:GitOpsHandover",
		},
		{
			Name: "1Password Connect answers slowly", Moment: AfterTheGate,
			Kind: "connect-slow", Target: "infra",
			Up: Waits,
		},
		{
			Name: "1Password Connect answers 500", Moment: AfterTheGate,
			Kind: "connect-5xx", Target: "infra",
			Up: Stops, Says: `ClusterSecretStore onepassword: .*status 500`, Before: "slipway:gitops:GitOpsHandover",
		},
	},
}
