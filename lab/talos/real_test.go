package talos_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	res "github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/lab/talos"
)

// The files in a folder of testdata/real are answers of a real control plane of that release (the VM that Slipway declares, one disk, a
// network plug-in, with the virtual IP), one file a resource type, and its replies in another. make record-talos records them anew.
var (
	update     = flag.Bool("update", false, "write the table of differences into the document")
	record     = flag.String("record", "", "talosconfig of a real cluster, whose answers replace the recorded ones")
	recordNode = flag.String("node", "", "address of the control plane that -record asks")
)

const realDifferences = "testdata/real/differences.yaml"

// recording is a folder with answers.
type recording string

// difference is a place where a node of the lab answers otherwise than a real one.
type difference struct {
	Type   string   // of the resource
	At     []string // fields: the resource's id, a blank and the path; * stands for any text
	Reason string
	// Machine means that the value is one of the machine: only that both have one is compared.
	Machine bool
	found   map[string]bool // the elements of At that there are
}

// names marks the elements of At that a field matches, and tells whether there is one.
func (d *difference) names(kind, field string) (named bool) {
	for _, at := range d.At {
		form := strings.ReplaceAll(regexp.QuoteMeta(at), `\*`, ".*")
		if d.Type == kind && regexp.MustCompile("^"+form+"$").MatchString(field) {
			if d.found == nil {
				d.found = map[string]bool{}
			}
			d.found[at], named = true, true
		}
	}
	return named
}

// answer is a resource as its YAML form has it, without what each change of it changes.
type answer struct {
	Metadata struct {
		Namespace  string            `yaml:"namespace"`
		Type       string            `yaml:"type"`
		ID         string            `yaml:"id"`
		Labels     map[string]string `yaml:"labels,omitempty"`
		Finalizers []string          `yaml:"finalizers,omitempty"`
	} `yaml:"metadata"`
	Spec any `yaml:"spec"`
}

func readAnswers(t *testing.T, data []byte) (out []answer) {
	t.Helper()
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var a answer
		err := decoder.Decode(&a)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, a)
	}
}

// ask lists the resources of a type.
func ask(ctx context.Context, t *testing.T, from state.State, namespace, kind string) []answer {
	t.Helper()
	list, err := from.List(ctx, res.NewMetadata(namespace, kind, "", res.VersionUndefined))
	require.NoError(t, err)
	var out []answer
	for _, r := range list.Items {
		text, err := yaml.Marshal(map[string]any{"spec": r.Spec()})
		require.NoError(t, err)
		a, of := readAnswers(t, text)[0], r.Metadata()
		a.Metadata.Namespace, a.Metadata.Type, a.Metadata.ID = of.Namespace(), of.Type(), of.ID()
		a.Metadata.Labels, a.Metadata.Finalizers = of.Labels().Raw(), *of.Finalizers()
		out = append(out, a)
	}
	return out
}

// flatten returns the fields of resources, each by the id of its resource and its path.
func flatten(t *testing.T, answers []answer) map[string]string {
	t.Helper()
	out := map[string]string{}
	var add func(at string, value any)
	add = func(at string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, v := range value {
				add(at+"."+key, v)
			}
			if len(value) == 0 {
				out[at] = "{}"
			}
		case []any:
			for i, v := range value {
				add(fmt.Sprintf("%s[%d]", at, i), v)
			}
			if len(value) == 0 {
				out[at] = "[]"
			}
		default:
			out[at] = fmt.Sprint(value)
		}
	}
	for _, a := range answers {
		text, err := yaml.Marshal(a)
		require.NoError(t, err)
		var whole map[string]any
		require.NoError(t, yaml.Unmarshal(text, &whole))
		for key, value := range whole {
			add(a.Metadata.ID+" "+key, value)
		}
	}
	return out
}

// record asks a real node for the resource types in these files, and writes its answers.
func (r recording) record(t *testing.T, files []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c, err := client.New(ctx, client.WithConfigFromFile(*record), client.WithEndpoints(*recordNode))
	require.NoError(t, err)
	defer c.Close() //nolint:errcheck // nothing was written
	ctx = client.WithNode(ctx, *recordNode)
	r.recordReplies(t, replies(ctx, t, c))
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		kind := readAnswers(t, data)[0].Metadata
		var text bytes.Buffer
		encoder := yaml.NewEncoder(&text)
		answers := ask(ctx, t, c.COSI, kind.Namespace, kind.Type)
		require.NotEmpty(t, answers, kind.Type)
		for _, a := range answers {
			require.NoError(t, encoder.Encode(a))
		}
		require.NoError(t, encoder.Close())
		require.NoError(t, os.WriteFile(filepath.Join(string(r), filepath.Base(file)), text.Bytes(), 0o644))
	}
}

// likeTheReal is a control plane like the recorded one.
func (r recording) likeTheReal(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.runs(r.field(t, "versions", "version"))
	hw := w.hardware(11)
	hw.Q35, hw.UUID = true, r.field(t, "systeminformations", "uuid")
	hw.Disks["scsi0"].Size = 40 << 30
	hw.CloudInit.Instance, hw.CloudInit.DNS = r.field(t, "platformmetadatas", "instanceId"), []netip.Addr{w.addr(1)}
	hw.CloudInit.Gateways = hw.CloudInit.DNS
	w.boots(hw, w.config(configmachine.TypeControlPlane, 11, func(c *v1alpha1.Config) {
		c.ClusterConfig.ClusterNetwork.ServiceSubnet = []string{"10.245.0.0/16"}
		c.ClusterConfig.ControllerManagerConfig.ExtraArgsConfig = r.flags(t, "controllermanagerconfigs")
		c.MachineConfig.MachineFeatures.HostDNSSupport.HostDNSForwardKubeDNSToHost = nil
		c.ClusterConfig.SchedulerConfig.ExtraArgsConfig = r.flags(t, "schedulerconfigs")
	}))
	w.bootstrap(11)
	w.stage(11, talos.StageRunning)
	w.eventually("it has the virtual IP", func() bool { return w.status(11).VIP })
	return w
}

// answers reads a file of the recording.
func (r recording) answers(t *testing.T, file string) []answer {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(string(r), file+".yaml"))
	require.NoError(t, err)
	answers := readAnswers(t, data)
	require.NotEmpty(t, answers, file)
	return answers
}

// spec is that of the resource which the configuration makes. Talos 1.14 makes another one from it, with what the component is given.
func (r recording) spec(t *testing.T, file string) map[string]any {
	t.Helper()
	answers := r.answers(t, file)
	made := slices.IndexFunc(answers, func(a answer) bool { return !strings.HasPrefix(a.Metadata.ID, "final-") })
	spec, _ := answers[made].Spec.(map[string]any)
	return spec
}

// field is a field of the resource in a file.
func (r recording) field(t *testing.T, file, field string) string {
	t.Helper()
	spec := r.spec(t, file)
	require.Contains(t, spec, field)
	return fmt.Sprint(spec[field])
}

// flags are those that the configuration gave to a component.
func (r recording) flags(t *testing.T, file string) v1alpha1.Args {
	t.Helper()
	spec := r.spec(t, file)
	all, _ := spec["extraArgs"].(map[string]any)
	args := v1alpha1.Args{}
	for flag, given := range all {
		of, _ := given.(map[string]any)
		values, _ := of["values"].([]any)
		require.Len(t, values, 1, flag)
		args[flag] = v1alpha1.NewArgValue(fmt.Sprint(values[0]), nil)
	}
	return args
}

func TestReal_ANodeAnswersAsARealOneExceptWhereSaid(t *testing.T) {
	folders, err := filepath.Glob("testdata/real/1.*")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	var known []*difference
	data, err := os.ReadFile(realDifferences)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &known))
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) { recording(folder).compared(t, known) })
	}
	if *record != "" || t.Failed() {
		return
	}
	for _, d := range known {
		for _, at := range d.At {
			require.True(t, d.found[at], "%s %s: there is no such difference any more; remove it from %s", d.Type, at, realDifferences)
		}
		require.NotEmpty(t, d.Reason, "%s %s", d.Type, d.At)
	}
}

// compared compares a node of the lab with the recorded one.
func (r recording) compared(t *testing.T, known []*difference) {
	files, err := filepath.Glob("testdata/real/1.12/*.yaml") // the types are the same for all
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	if *record != "" {
		r.record(t, files)
		return
	}
	w := r.likeTheReal(t)
	octets := w.net.As4()
	alike := strings.NewReplacer(fmt.Sprintf("%d.%d.%d.", octets[0], octets[1], octets[2]), "10.25.11.", node(11), "infra-cp-1",
		"vm-11", "infra-cp-1",
		resource[*clusterres.Identity](w, 11, clusterres.NamespaceName, clusterres.LocalIdentity).TypedSpec().NodeID,
		r.field(t, "identities", "nodeId"), strings.ToLower(mac(11)), "bc:24:11:00:01:11")
	for _, file := range files {
		recorded := r.answers(t, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		kind := recorded[0].Metadata
		text, err := yaml.Marshal(ask(w.ctx, t, w.admin(11).COSI, kind.Namespace, kind.Type))
		require.NoError(t, err)
		var answers []answer
		require.NoError(t, yaml.Unmarshal([]byte(alike.Replace(string(text))), &answers))
		compareReal(t, kind.Type, flatten(t, recorded), flatten(t, answers), known)
	}
	r.repliesAlike(t, alike, replies(w.ctx, t, w.admin(11)), known)
}

// compareReal reports the fields that differ and that no difference names, and marks those differences that exist.
func compareReal(t *testing.T, kind string, real, lab map[string]string, known []*difference) {
	t.Helper()
	fields := maps.Clone(real)
	maps.Copy(fields, lab)
	for _, at := range slices.Sorted(maps.Keys(fields)) {
		want, has := real[at]
		got, answers := lab[at]
		if has == answers && want == got {
			continue
		}
		named := false
		for _, d := range known {
			if (!d.Machine || has == answers) && d.names(kind, at) {
				named = true
			}
		}
		if !named {
			t.Errorf("%s %s: the real one has %q (%t), the lab %q (%t)", kind, at, want, has, got, answers)
		}
	}
}

const (
	realTable    = "<!-- differences: written by go -C lab test ./talos -run TestReal_TheDocument -update -->\n"
	endRealTable = "<!-- end of differences -->\n"
)

func TestReal_TheDocumentHasTheDifferences(t *testing.T) {
	const document = "../../docs/lab.md"
	var known []difference
	data, err := os.ReadFile(realDifferences)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &known))
	table := "\n| resource, or replies | id and field, or what is asked | why the lab's differs |\n| --- | --- | --- |\n"
	for _, d := range known {
		if !d.Machine {
			kind, _, _ := strings.Cut(d.Type, ".")
			table += fmt.Sprintf("| `%s` | `%s` | %s |\n", kind, strings.Join(d.At, "`, `"), d.Reason)
		}
	}
	table += "\n"
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), realTable)
	require.True(t, found, "the document has no place for the table")
	shown, after, found := strings.Cut(rest, endRealTable)
	require.True(t, found, "the table has no end")
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(before+realTable+table+endRealTable+after), 0o644))
		return
	}
	require.Equal(t, table, shown, "run make golden")
}
