package cluster

// LLDPDExtension announces the machine to the switch it is plugged into.
const LLDPDExtension = "siderolabs/lldpd"

// extension is what else has to be in place for a system extension to work.
type extension struct {
	agent   bool   // it needs Proxmox's guest agent channel, and Proxmox waits for it where the channel is on
	service string // the Talos service that it runs; "" if it is not known to run one
}

// knownExtensions is all that is known of extensions. What is not here needs nothing beside the image.
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

// ExtensionServices are the Talos services that run on every machine because of the extensions, such as
// ext-qemu-guest-agent.
func (t Talos) ExtensionServices() []string {
	var services []string
	for _, name := range t.Extensions {
		if service := knownExtensions[name].service; service != "" {
			services = append(services, service)
		}
	}
	return services
}
