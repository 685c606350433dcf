package cluster

// LLDPDExtension announces the machine to the switch it is plugged into.
const LLDPDExtension = "siderolabs/lldpd"

// extension is what a system extension requires or runs.
type extension struct {
	agent   bool   // requires the VMs' guest agent channel; if the channel is on, Proxmox waits for the agent
	service string // Talos service that it runs; "" if none is known
}

// knownExtensions are the extensions with known requirements. Other extensions need nothing except the image.
var knownExtensions = map[string]extension{
	"siderolabs/qemu-guest-agent": {agent: true, service: "ext-qemu-guest-agent"},
	LLDPDExtension:                {service: "ext-lldpd"},
}

// GuestAgent reports whether the guest agent runs on the machines, so that the VMs' agent channel must be on.
func (t Talos) GuestAgent() bool {
	for _, name := range t.Extensions {
		if knownExtensions[name].agent {
			return true
		}
	}
	return false
}

// ExtensionServices returns the Talos services that the extensions run on every machine, such as ext-qemu-guest-agent.
func (t Talos) ExtensionServices() []string {
	var services []string
	for _, name := range t.Extensions {
		if service := knownExtensions[name].service; service != "" {
			services = append(services, service)
		}
	}
	return services
}
