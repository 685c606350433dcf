package machineconfig

import (
	"fmt"
	"regexp"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/meta"
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime/extensions"
)

// DefaultLLDPD is the configuration of lldpd where none is given: neighbours are told the name of the interface.
const DefaultLLDPD = "configure lldp portidsubtype ifname\n"

// lldpd announces the machine to the switch it is plugged into.
const lldpd = "siderolabs/lldpd"

// extension is what else has to be in place for a system extension to work.
type extension struct {
	// agent opens Proxmox's guest agent channel. Proxmox waits in vain for an agent that is not there, and without the
	// channel the extension never gets ready.
	agent bool
	// runs is the Talos service that the extension brings; "" where it is not known to bring one.
	runs string
	// service configures what the extension runs; nil means that it needs no configuration. An extension that waits for
	// one keeps the machine from ever getting ready without.
	service func(Cluster) config.Document
}

// known is all that is known of extensions. What is not here needs nothing beside the image.
var known = map[string]extension{
	"siderolabs/qemu-guest-agent": {agent: true, runs: "ext-qemu-guest-agent"},
	lldpd:                         {service: lldpdService, runs: "ext-lldpd"},
}

// Extensions are official system extensions by name, such as siderolabs/qemu-guest-agent. All that has to agree with them
// follows from this list: the image, the VM's agent channel and the configuration of what they run.
type Extensions []string

// Agent tells whether the guest agent runs on the machines, so that its channel has to be open.
func (e Extensions) Agent() bool {
	for _, name := range e {
		if known[name].agent {
			return true
		}
	}
	return false
}

// Services are the Talos services that have to run on every machine because of the extensions, such as
// ext-qemu-guest-agent.
func (e Extensions) Services() []string {
	var services []string
	for _, name := range e {
		if service := known[name].runs; service != "" {
			services = append(services, service)
		}
	}
	return services
}

// services are the configurations of the extensions that run something.
func (e Extensions) services(c Cluster) []config.Document {
	var docs []config.Document
	for _, name := range e {
		if service := known[name].service; service != nil {
			docs = append(docs, service(c))
		}
	}
	return docs
}

// extensionName is how the image factory names official extensions.
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
			errs = append(errs, fmt.Errorf("%s: %s is listed twice; drop one", at, name))
		}
		seen[name] = true
	}
	if c.LLDPD != "" && !seen[lldpd] {
		errs = append(errs, fmt.Errorf("lldpd: configured without its extension; add %s to the extensions, or drop the configuration", lldpd))
	}
	return errs
}

// lldpdService is present exactly with its extension: Talos restarts on the one without the other.
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
