package machineconfig

import (
	"fmt"
	"regexp"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"
)

// DefaultLLDPD is the configuration of lldpd if none is given: lldpd sends the name of the interface to the neighbours.
const DefaultLLDPD = "configure lldp portidsubtype ifname\n"

// lldpd is the extension that announces the machine to the switch that it is connected to.
const lldpd = "siderolabs/lldpd"

// extension holds what a system extension needs besides the image.
type extension struct {
	// agent tells that the extension needs Proxmox's guest agent channel. Without the channel, the extension never gets ready. Without
	// the extension, Proxmox waits for an agent that never answers.
	agent bool
	// runs is the Talos service of the extension; "" if none is known.
	runs string
	// service renders the configuration of the service; nil means that the extension needs none. If an extension waits for a
	// configuration that is missing, the machine never gets ready.
	service func(Cluster) config.Document
}

// known holds the extensions that need something besides the image.
var known = map[string]extension{
	"siderolabs/qemu-guest-agent": {agent: true, runs: "ext-qemu-guest-agent"},
	lldpd:                         {service: lldpdService, runs: "ext-lldpd"},
}

// Extensions are the names of official system extensions, such as siderolabs/qemu-guest-agent. The image, the VM's agent channel and
// the configuration of the extensions' services are all derived from this list.
type Extensions []string

// Agent tells whether the guest agent runs on the machines, so that the VMs need its channel.
func (e Extensions) Agent() bool {
	for _, name := range e {
		if known[name].agent {
			return true
		}
	}
	return false
}

// Services returns the Talos services of the extensions, such as ext-qemu-guest-agent. They must run on every machine.
func (e Extensions) Services() []string {
	var services []string
	for _, name := range e {
		if service := known[name].runs; service != "" {
			services = append(services, service)
		}
	}
	return services
}

// services returns the documents that configure the extensions' services.
func (e Extensions) services(c Cluster) []config.Document {
	var docs []config.Document
	for _, name := range e {
		if service := known[name].service; service != nil {
			docs = append(docs, service(c))
		}
	}
	return docs
}

// extensionName is the form of the image factory's names of official extensions.
var extensionName = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9][a-z0-9._-]*$`)

func (e Extensions) validate(c Cluster) []error {
	var errs []error
	seen := map[string]bool{}
	for i, name := range e {
		at := indexed("extensions", i)
		if !extensionName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s: %q is not the name of an extension; write it like siderolabs/qemu-guest-agent", at, name))
		}
		if seen[name] {
			errs = append(errs, fmt.Errorf("%s: %s is listed twice; remove one", at, name))
		}
		seen[name] = true
	}
	if c.LLDPD != "" && !seen[lldpd] {
		errs = append(errs, fmt.Errorf("lldpd: configured without its extension; add %s to the extensions, or remove the configuration", lldpd))
	}
	return errs
}

// lldpdService renders the configuration of lldpd. It is rendered if and only if the extension is declared: Talos reboots the machine
// if one is there without the other.
func lldpdService(c Cluster) config.Document {
	text := c.LLDPD
	if text == "" {
		text = DefaultLLDPD
	}
	return &extensions.ServiceConfigV1Alpha1{
		Meta:               meta.Meta{MetaAPIVersion: "v1alpha1", MetaKind: extensions.ServiceConfigKind},
		ServiceName:        "lldpd",
		ServiceConfigFiles: extensions.ConfigFileList{{ConfigFileContent: text, ConfigFileMountPath: "/usr/local/etc/lldpd/lldpd.conf"}},
	}
}
