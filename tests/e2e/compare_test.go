//go:build e2e

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster/machineconfig"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// TestCompare_WithTerraformAndHelm makes the same cluster on the same simulated machines, from none to the same open gate and the same
// applied tree: with Slipway, with tests/compare, which is what a user would write for Terraform or OpenTofu, Helm and Flux, and with
// Slipway again, because whoever comes later finds files in memory. Programs are compiled before. It reports the ratio, and
// when each side reached what both have to reach. What the other side installs is read from Slipway's state, so that both install the same.
func TestCompare_WithTerraformAndHelm(t *testing.T) {
	terraform := terraformCommand(t)
	l := labOfShape(t, "compare", func(s settings) {
		s.withoutStorage()
	})
	l.pulumi("preview", "--stack", "infra")
	l.in("go", "-C", l.checkout(), "run", "./cmd/slipway-probe", "help") // Go keeps what it has linked for a run
	first := slipwayComesUp(l)
	other := newOther(l, terraform)
	other.reads()
	unprotectAndDestroy(l)

	other.terraform("plan", "-input=false", "-no-color")
	began := time.Now()
	other.terraform("apply", "-auto-approve", "-input=false", "-no-color")
	machines := time.Since(began)
	steps := other.platform()
	other.gateOpens()
	rival := time.Since(began)
	t.Logf("Terraform, Helm and Flux: %.1f s; %.1f s for the machines, and then\n%s", rival.Seconds(), machines.Seconds(), steps)
	other.terraform("destroy", "-auto-approve", "-input=false", "-no-color")
	require.Empty(t, l.status().VMs)

	second := slipwayComesUp(l)
	unprotectAndDestroy(l)
	t.Logf("Slipway takes %.2f and %.2f of the time of Terraform, Helm and Flux",
		first.Seconds()/rival.Seconds(), second.Seconds()/rival.Seconds())
}

// slipwayComesUp creates the cluster with Slipway, reports when each component's resources were made, and which took longest, and returns
// how long all took.
func slipwayComesUp(l *lab) time.Duration {
	l.t.Helper()
	began := time.Now()
	run := l.engine("up", "--yes", "--skip-preview")
	var components []string
	from, to := map[string]time.Duration{}, map[string]time.Duration{}
	var resources []string
	run.follows(func(m moment) bool {
		resource := shortURN(m.urn)
		if !m.ended && !strings.HasPrefix(resource, "slipway:") && !strings.HasPrefix(resource, "pulumi:") {
			resources = append(resources, resource)
			from[resource] = time.Since(began)
		}
		to[resource] = time.Since(began)
		name, is := outermost(m.urn)
		if !is {
			return true
		}
		if _, seen := from[name]; !seen {
			components = append(components, name)
			from[name] = time.Since(began)
		}
		to[name] = time.Since(began)
		return true
	})
	took := time.Since(began)
	require.NoError(l.t, <-run.ended, "%s", end(run.said()))
	l.checkOutput(run.said(), "")
	slices.SortFunc(resources, func(a, b string) int { return cmp.Compare(to[b]-from[b], to[a]-from[a]) })
	var lines strings.Builder
	for _, name := range append(components, resources[:min(len(resources), 12)]...) {
		fmt.Fprintf(&lines, "  %6.1f s to %6.1f s  %s\n", from[name].Seconds(), to[name].Seconds(), name)
	}
	l.t.Logf("Slipway: %.1f s\n%s", took.Seconds(), lines.String())
	return took
}

// outermost is the component that a resource belongs to, such as TalosCluster, or is itself.
func outermost(urn string) (name string, is bool) {
	first, _, _ := strings.Cut(strings.SplitN(urn, "::", 4)[2], "$")
	if !strings.HasPrefix(first, "slipway:") {
		return "", false
	}
	return first[strings.LastIndex(first, ":")+1:], true
}

// terraformCommand is the program that the user has; there is no module of it to build.
func terraformCommand(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"tofu", "terraform"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.Fail(t, "neither tofu nor terraform is installed; make compare needs one of them")
	return ""
}

// other is the other side: a folder with the configuration, and what it runs.
type other struct {
	lab     *lab
	folder  string
	command string // terraform or tofu
	path    string // PATH with helm
}

// newOther builds the providers and helm, and puts the configuration into a folder of its own: it gets secrets.
func newOther(l *lab, command string) *other {
	l.t.Helper()
	o := &other{lab: l, folder: filepath.Join(l.t.TempDir(), "compare"), command: command}
	source, err := filepath.Abs(filepath.Join("..", "compare"))
	require.NoError(l.t, err)
	for _, folder := range []string{"", "bin", "crds", "releases", "before", "stores", "flux"} {
		require.NoError(l.t, os.MkdirAll(filepath.Join(o.folder, folder), 0o700))
	}
	for _, file := range []string{"main.tf", "platform.sh"} {
		content, err := os.ReadFile(filepath.Join(source, file))
		require.NoError(l.t, err)
		o.writes(file, content)
	}
	bin := filepath.Join(o.folder, "bin")
	for _, name := range []string{"proxmox", "talos"} {
		runGo(l.t, filepath.Join(source, "tools"), "build", "-o", filepath.Join(bin, "terraform-provider-"+name), "./"+name)
	}
	runGo(l.t, filepath.Join(source, "tools"), "build", "-o", filepath.Join(bin, "helm"), "helm.sh/helm/v3/cmd/helm")
	runGo(l.t, filepath.Join("..", ".."), "build", "-o", filepath.Join(bin, "slipway-probe"), "./cmd/slipway-probe")
	o.writes("terraformrc", fmt.Appendf(nil, `provider_installation {
  dev_overrides {
    "bpg/proxmox"      = %[1]q
    "siderolabs/talos" = %[1]q
  }
}
`, bin))
	o.path = bin + ":" + strings.TrimSpace(l.in("sh", "-c", "echo $PATH"))
	return o
}

// runGo runs a command of Go in a folder.
func runGo(t *testing.T, folder string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
}

func (o *other) writes(name string, content []byte) {
	o.lab.t.Helper()
	require.NoError(o.lab.t, os.WriteFile(filepath.Join(o.folder, name), content, 0o600))
}

func (o *other) writesJSON(name string, value any) {
	o.lab.t.Helper()
	content, err := json.Marshal(value)
	require.NoError(o.lab.t, err)
	o.writes(name, content)
}

// terraform runs a command of Terraform in the lab.
func (o *other) terraform(args ...string) {
	o.lab.t.Helper()
	o.runs(append([]string{o.command, "-chdir=" + o.folder}, args...)...)
}

// runs runs a command in the lab with the folder's settings.
func (o *other) runs(argv ...string) string {
	o.lab.t.Helper()
	return o.lab.in(append([]string{
		"env", "PATH=" + o.path, "TF_CLI_CONFIG_FILE=" + filepath.Join(o.folder, "terraformrc"), "CHECKPOINT_DISABLE=1",
		"KUBECONFIG=" + filepath.Join(o.folder, "kubeconfig"), "HELM_CACHE_HOME=" + filepath.Join(o.folder, "helm"),
	}, argv...)...)
}

// platform installs everything behind the machines, and returns when each step was done.
func (o *other) platform() string {
	o.lab.t.Helper()
	for _, name := range []string{"kubeconfig", "talosconfig"} {
		o.writes(name, []byte(o.lab.secret("env", "TF_CLI_CONFIG_FILE="+filepath.Join(o.folder, "terraformrc"), "CHECKPOINT_DISABLE=1",
			o.command, "-chdir="+o.folder, "output", "-raw", name)))
	}
	return o.runs("bash", filepath.Join(o.folder, "platform.sh"), o.folder)
}

// gateOpens runs the gate by hand: the cluster is as Slipway would have it.
func (o *other) gateOpens() {
	o.lab.t.Helper()
	o.runs("slipway-probe", "gate", "--spec", filepath.Join(o.folder, "gate.json"),
		"--kubeconfig", filepath.Join(o.folder, "kubeconfig"), "--talosconfig", filepath.Join(o.folder, "talosconfig"))
}

// reads reads from Slipway's state and cluster what the other side installs.
func (o *other) reads() {
	o.lab.t.Helper()
	o.writes("gate.json", []byte(o.lab.secret("pulumi", "stack", "output", "--stack", "infra", "gateSpec")))
	var state struct {
		Deployment struct {
			Resources []struct {
				Type   string
				Inputs map[string]any
			}
		}
	}
	require.NoError(o.lab.t, json.Unmarshal([]byte(o.lab.secret("pulumi", "stack", "export", "--show-secrets", "--stack", "infra")), &state))
	vms := map[string]map[string]any{}
	for i, resource := range state.Deployment.Resources {
		inputs := plain(resource.Inputs).(map[string]any)
		kind := strings.TrimPrefix(resource.Type, "kubernetes:")
		switch {
		case resource.Type == "proxmoxve:VM/virtualMachine:VirtualMachine":
			vms[inputs["name"].(string)] = inputs
		case kind == "helm.sh/v3:Release":
			o.release(inputs)
		case kind == "core/v1:Namespace", kind == "core/v1:Secret", kind == "core/v1:ConfigMap":
			// Namespaces come first: kubectl applies the files of a folder in the order of their names.
			o.writesJSON(fmt.Sprintf("before/%t-%d.json", kind != "core/v1:Namespace", i), manifest(inputs))
		case strings.HasPrefix(kind, "external-secrets.io/"), strings.HasPrefix(kind, "bitnami.com/"):
			o.writesJSON(fmt.Sprintf("stores/%d.json", i), manifest(inputs))
		case strings.HasPrefix(kind, "fluxcd.controlplane.io/"):
			o.writesJSON(fmt.Sprintf("flux/%d.json", i), manifest(inputs))
		}
	}
	o.definitions()
	o.machines(vms)
}

// release writes a chart and its values.
func (o *other) release(inputs map[string]any) {
	name := inputs["name"].(string)
	repository, _ := inputs["repositoryOpts"].(map[string]any)
	line := []any{inputs["chart"], inputs["version"], inputs["namespace"], ""}
	if repository != nil {
		line[3] = repository["repo"]
	}
	o.writes("releases/"+name+".tsv", fmt.Appendf(nil, "%s\t%s\t%s\t%s\n", line...))
	o.writesJSON("releases/"+name+".json", inputs["values"])
	for role, prefix := range map[string]string{"first": "cilium", "last": "flux-operator"} {
		if name == prefix {
			o.writes(role, []byte(name))
		}
	}
}

// definitions writes the CRDs that Slipway has applied.
func (o *other) definitions() {
	o.lab.t.Helper()
	var list struct{ Items []map[string]any }
	require.NoError(o.lab.t, json.Unmarshal([]byte(o.lab.kubectl("get", "crd", "--show-managed-fields", "--output=json")), &list))
	for _, item := range list.Items {
		metadata := item["metadata"].(map[string]any)
		if !slices.ContainsFunc(metadata["managedFields"].([]any), func(field any) bool {
			return field.(map[string]any)["manager"] == "slipway"
		}) {
			continue
		}
		kept := map[string]any{"name": metadata["name"]}
		if annotations := metadata["annotations"]; annotations != nil {
			kept["annotations"] = annotations // api-approved.kubernetes.io
		}
		item["metadata"] = kept
		delete(item, "status")
		o.writesJSON(fmt.Sprintf("crds/%s.json", kept["name"]), item)
	}
}

// machines writes the variables of main.tf.
func (o *other) machines(vms map[string]map[string]any) {
	o.lab.t.Helper()
	c := clusters.Read(o.lab.t, o.lab.stackFile("infra"))
	nodes := map[string]any{}
	for _, machine := range c.Machines() {
		patches, err := machineconfig.Render(c, machine)
		require.NoError(o.lab.t, err)
		nodes[machine.Name] = map[string]any{
			"host": vms[machine.Name]["nodeName"], "vm_id": machine.VMID, "role": machine.Role,
			"cores": machine.Cores, "memory": machine.Memory.MiB(), "mac": machine.MAC, "bridge": machine.Bridge,
			"address": machine.Address, "gateway": c.Network.Gateway,
			"cidr": fmt.Sprintf("%s/%d", machine.Address, c.Network.NodeCIDR.Bits()), "resolvers": c.Network.Resolvers(),
			"datastore": machine.Datastore, "disks": []int{machine.Disk.GiB()}, "patches": patches,
		}
	}
	o.writesJSON("cluster.auto.tfvars.json", map[string]any{"cluster": map[string]any{
		"name": c.Identity.Name, "proxmox": c.Proxmox.Endpoint, "api": c.Network.Endpoint(), "factory": c.Talos.Factory,
		"schematic":     "customization:\n  systemExtensions:\n    officialExtensions: [" + strings.Join(c.Talos.Extensions, ", ") + "]\n",
		"talos_version": c.Talos.Version, "kubernetes_version": c.Kubernetes.Version, "iso_datastore": c.Proxmox.Datastores.ISO, "nodes": nodes,
	}})
}

// manifest is a Kubernetes object as the program declares it, without what is only for Pulumi.
func manifest(inputs map[string]any) map[string]any {
	delete(inputs, "status")
	metadata, _ := inputs["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if strings.HasPrefix(key, "pulumi.com/") {
			delete(annotations, key)
		}
	}
	return inputs
}

// plain replaces the secrets of an exported state by their values.
func plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if text, secret := value["plaintext"].(string); secret {
			var inner any
			if json.Unmarshal([]byte(text), &inner) == nil {
				return plain(inner)
			}
		}
		for key, item := range value {
			value[key] = plain(item)
		}
	case []any:
		for i, item := range value {
			value[i] = plain(item)
		}
	}
	return value
}
