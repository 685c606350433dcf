package talos

import (
	"os"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/kernel"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
)

// publishKernelParameters publishes the kernel parameters of the configuration, and a status of those that the kernel takes, as the
// controllers runtime.KernelParamConfigController and KernelParamSpecController of machined do.
func (b *boot) publishKernelParameters(cfg config.Provider) {
	wanted := map[string]string{}
	for name, value := range cfg.Machine().Sysctls() {
		wanted[kernel.Sysctl+"."+name] = value
	}
	for name, value := range cfg.Machine().Sysfs() {
		wanted[kernel.Sysfs+"."+name] = value
	}
	for id, value := range wanted {
		spec := runtime.NewKernelParamSpec(runtime.NamespaceName, id)
		spec.TypedSpec().Value = value
		b.res.Put(spec)
		status := runtime.NewKernelParamStatus(runtime.NamespaceName, id)
		status.TypedSpec().Current = value
		if before, taken := takes(id, value); taken {
			status.TypedSpec().Default = before
			b.res.Put(status)
		} else {
			b.res.Remove(status.Metadata())
		}
	}
	had, err := safe.StateListAll[*runtime.KernelParamSpec](b.ctx, b.res.State())
	if err != nil {
		return // the boot ends
	}
	for spec := range had.All() {
		if _, still := wanted[spec.Metadata().ID()]; !still {
			b.res.Remove(spec.Metadata())
			b.res.Remove(runtime.NewKernelParamStatus(runtime.NamespaceName, spec.Metadata().ID()).Metadata())
		}
	}
}

// takes tells whether a kernel takes a value of a parameter, and which value it has before. The kernel is that of this computer, of which a
// namespace shows not all parameters of the network.
func takes(id, value string) (before string, taken bool) {
	file := (&kernel.Param{Key: id}).Path()
	text, err := os.ReadFile(file)
	if err != nil {
		return "", strings.HasPrefix(file, "/proc/sys/net/core/") || strings.HasPrefix(file, "/sys/")
	}
	before = strings.TrimSpace(string(text))
	return before, !areNumbers(before) || areNumbers(value)
}

// areNumbers tells whether a text is a list of whole numbers.
func areNumbers(text string) bool {
	return strings.Trim(text, "0123456789- \t") == "" && strings.TrimSpace(text) != ""
}
