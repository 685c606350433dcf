package cluster

import "slices"

// LLDPDExtension announces the machine to the switch it is plugged into.
const LLDPDExtension = "siderolabs/lldpd"

// guestAgentExtension requires the VMs' guest agent channel; if the channel is on, Proxmox waits for the agent.
const guestAgentExtension = "siderolabs/qemu-guest-agent"

// GuestAgentService is the Talos service of the guest agent. It waits for the VM's agent channel, and a boot waits for it.
const GuestAgentService = "ext-qemu-guest-agent"

// extensionServices are the Talos services of extensions that are known to run one. Other extensions need nothing except the image.
var extensionServices = map[string]string{guestAgentExtension: GuestAgentService, LLDPDExtension: "ext-lldpd"}

// GuestAgent reports whether the guest agent runs on the machines, so that the VMs' agent channel must be on.
func (t Talos) GuestAgent() bool { return slices.Contains(t.Extensions, guestAgentExtension) }

// ExtensionServices returns the Talos services that the extensions run on every machine, such as ext-qemu-guest-agent.
func (t Talos) ExtensionServices() []string {
	var services []string
	for _, name := range t.Extensions {
		if service := extensionServices[name]; service != "" {
			services = append(services, service)
		}
	}
	return services
}
