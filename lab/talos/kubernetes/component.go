package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/lab/kube/authority"
)

// Component is a component of a control plane, which runs as a static pod.
type Component struct {
	Name    string // e.g. kube-apiserver
	Image   string
	Enabled bool

	cfg    config.Provider
	args   map[string][]string
	source any // its part of the configuration
}

// Components are the components of the control plane of a configuration. Names of the API server's certificate are no part of its pod.
func Components(cfg config.Provider) []Component {
	cluster, plane, raw := cfg.Cluster(), cfg.Machine().Controlplane(), cfg.RawV1Alpha1().ClusterConfig
	server, manager, scheduler := cluster.APIServer(), cluster.ControllerManager(), cluster.Scheduler()
	var source any
	if raw.APIServerConfig != nil {
		c := *raw.APIServerConfig
		c.CertSANs = nil
		source = c
	}
	return []Component{
		{k8s.APIServerID, server.Image(), true, cfg, server.ExtraArgs(), source},
		{k8s.ControllerManagerID, manager.Image(), !plane.ControllerManager().Disabled(), cfg, manager.ExtraArgs(), raw.ControllerManagerConfig},
		{k8s.SchedulerID, scheduler.Image(), !plane.Scheduler().Disabled(), cfg, scheduler.ExtraArgs(), raw.SchedulerConfig},
	}
}

// ComponentOf returns the component of a name.
func ComponentOf(cfg config.Provider, name string) Component {
	all := Components(cfg)
	return all[slices.IndexFunc(all, func(c Component) bool { return c.Name == name })]
}

// secretsVersion stands for Talos's number for the files of the static pods, which it counts up when they change. The lab has a checksum of
// the CAs that they are made from.
func (c Component) secretsVersion() string { return authority.Checksum(c.cfg.Cluster()) }

// Spec is what the static pod is made from: another spec is another pod.
func (c Component) Spec() string {
	text, err := yaml.Marshal(c.source)
	return fmt.Sprintf("%s %s %t %s%v", c.Image, c.secretsVersion(), c.Enabled, text, err)
}

// Annotations are those of the pod. Talos counts up the number of the arguments when they change; the lab has a checksum of what the pod is
// made from.
func (c Component) Annotations() map[string]string {
	sum := sha256.Sum256([]byte(c.Spec()))
	return map[string]string{
		constants.AnnotationStaticPodSecretsVersion: c.secretsVersion(), constants.AnnotationStaticPodConfigVersion: hex.EncodeToString(sum[:4]),
	}
}

// StaticPod is the pod that Talos hands to the kubelet. Of a command there is what the configuration adds, and the admission plugin that
// Talos switches on: the flags that `talosctl upgrade-k8s` looks for.
func (c Component) StaticPod() *k8s.StaticPod {
	flags := map[string][]string{}
	maps.Copy(flags, c.args)
	if c.Name == k8s.APIServerID { // extraArgs add to it
		const plugins = "enable-admission-plugins"
		flags[plugins] = []string{strings.Join(append([]string{"NodeRestriction"}, flags[plugins]...), ",")}
	}
	command := []any{"/usr/local/bin/" + c.Name}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		for _, value := range flags[flag] {
			command = append(command, "--"+flag+"="+value)
		}
	}
	annotations := map[string]any{}
	for key, value := range c.Annotations() {
		annotations[key] = value
	}
	r := k8s.NewStaticPod(k8s.NamespaceName, c.Name)
	r.TypedSpec().Pod = map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": c.Name, "namespace": "kube-system", "annotations": annotations,
			"labels": map[string]any{"tier": "control-plane", "k8s-app": c.Name, "component": c.Name},
		},
		"spec": map[string]any{
			"hostNetwork": true, "priorityClassName": "system-cluster-critical",
			"containers": []any{map[string]any{"name": c.Name, "image": c.Image, "command": command}},
		},
	}
	return r
}
