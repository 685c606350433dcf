package config

// choice is a kind of text of which only some are allowed, exactly, case included.
type choice interface {
	// choices says what the text is, with its article, and lists what is allowed. The value itself does not matter.
	choices() (what string, allowed []string)
}

// DiskUse is what a data disk is for.
type DiskUse string

// The uses of a data disk.
const (
	DiskRaw    DiskUse = "raw"
	DiskVolume DiskUse = "volume"
)

// WorkerJoin is when workers join the cluster.
type WorkerJoin string

// The join orders.
const (
	JoinParallel  WorkerJoin = "parallel"
	JoinAfterGate WorkerJoin = "afterGate"
)

// DiskEncryption is where the key of Talos's encrypted partitions comes from.
type DiskEncryption string

// The kinds of disk encryption.
const (
	DiskEncryptionNone   DiskEncryption = "none"
	DiskEncryptionNodeID DiskEncryption = "nodeID"
	DiskEncryptionTPM    DiskEncryption = "tpm"
)

// CiliumMode is how Cilium gets into the cluster.
type CiliumMode string

// The modes of Cilium.
const (
	CiliumHelm   CiliumMode = "helm"
	CiliumInline CiliumMode = "inline"
)

// Routing is how pods' traffic gets from node to node.
type Routing string

// The kinds of routing.
const (
	RoutingTunnel Routing = "tunnel"
	RoutingNative Routing = "native"
)

// Masquerade is what gives pods' traffic the node's address when it leaves the cluster.
type Masquerade string

// The kinds of masquerading.
const (
	MasqueradeIPTables Masquerade = "iptables"
	MasqueradeBPF      Masquerade = "bpf"
)

// Encryption is how traffic between nodes is encrypted.
type Encryption string

// The kinds of encryption.
const (
	EncryptionNone      Encryption = "none"
	EncryptionWireGuard Encryption = "wireguard"
)

// BandwidthManager is Cilium's pacing of pods' traffic.
type BandwidthManager string

// The kinds of bandwidth management: earliest departure time, or that and BBR as the pods' congestion control.
const (
	BandwidthNone BandwidthManager = "none"
	BandwidthEDT  BandwidthManager = "edt"
	BandwidthBBR  BandwidthManager = "bbr"
)

func (DiskUse) choices() (string, []string) { return "a use of a disk", names(DiskRaw, DiskVolume) }

func (WorkerJoin) choices() (string, []string) {
	return "an order to join in", names(JoinParallel, JoinAfterGate)
}

func (DiskEncryption) choices() (string, []string) {
	return "a kind of disk encryption", names(DiskEncryptionNone, DiskEncryptionNodeID, DiskEncryptionTPM)
}

func (CiliumMode) choices() (string, []string) {
	return "a mode of Cilium", names(CiliumHelm, CiliumInline)
}

func (Routing) choices() (string, []string) {
	return "a kind of routing", names(RoutingTunnel, RoutingNative)
}

func (Masquerade) choices() (string, []string) {
	return "a kind of masquerading", names(MasqueradeIPTables, MasqueradeBPF)
}

func (Encryption) choices() (string, []string) {
	return "a kind of encryption", names(EncryptionNone, EncryptionWireGuard)
}

func (BandwidthManager) choices() (string, []string) {
	return "a kind of bandwidth management", names(BandwidthNone, BandwidthEDT, BandwidthBBR)
}

func names[T ~string](values ...T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}
