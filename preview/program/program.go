// Package program runs `pulumi preview` of a checkout's program on an empty backend, for the stack files as they are. It needs neither the
// stacks' state, nor their secrets, nor anything that the stack files name:
//
//   - The backend, PULUMI_HOME and the project file are in a folder of their own. The user's login is not used.
//   - The stack files are copied. Each secret in them, and each required secret, is a placeholder.
//   - Providers are not asked about resources with unknown inputs, such as everything in the cluster.
//
// The plugins are those of the machine, or are downloaded there by Pulumi.
package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

// Project is a folder in which Pulumi runs the program of a checkout.
type Project struct {
	folder   string
	checkout string
	name     string // of the Pulumi project
	secrets  config.Placeholders
	env      []string
}

// ErrNoPulumi means that the Pulumi CLI is not in PATH.
var ErrNoPulumi = errors.New("pulumi is not in PATH; install the Pulumi CLI, or compare without the programs: -program=false")

// New builds the program of a checkout, and prepares a folder in which Pulumi runs it. The folder is created, and may be removed at any
// time. Of an error, Problems says where the program does not compile.
func New(ctx context.Context, folder, checkout string, secrets config.Placeholders) (*Project, error) {
	if _, err := exec.LookPath("pulumi"); err != nil {
		return nil, ErrNoPulumi
	}
	p := &Project{folder: folder, checkout: checkout, secrets: secrets}
	for _, one := range []string{p.backend(), p.home()} {
		if err := errors.Join(os.RemoveAll(one), os.MkdirAll(one, 0o700)); err != nil {
			return nil, err
		}
	}
	if err := p.linkPlugins(); err != nil {
		return nil, err
	}
	p.env = p.environment(os.Environ())
	if err := p.writeProject(); err != nil {
		return nil, err
	}
	// Pulumi builds it again, which takes no time if nothing has changed, and would build it for two stacks at the same time.
	if out, err := p.run(ctx, checkout, "go", "build", "-o", p.binary(), "."); err != nil {
		return nil, newCompileError(out, err)
	}
	return p, nil
}

func (p *Project) backend() string { return filepath.Join(p.folder, "backend") }
func (p *Project) home() string    { return filepath.Join(p.folder, "home") }
func (p *Project) binary() string  { return filepath.Join(p.folder, "slipway") }

// linkPlugins makes Pulumi use the user's plugins, and store its downloads there.
func (p *Project) linkPlugins() error {
	home := os.Getenv("PULUMI_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		home = filepath.Join(user, ".pulumi")
	}
	plugins := filepath.Join(home, "plugins")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		return err
	}
	return os.Symlink(plugins, filepath.Join(p.home(), "plugins"))
}

// kept are the variables that Pulumi, Go and the download of plugins need. Nothing else of the environment reaches the program.
var kept = []string{
	"PATH", "HOME", "USER", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION",
}

func (p *Project) environment(base []string) []string {
	flags := ""
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		key, value, _ := strings.Cut(entry, "=")
		if key == "GOFLAGS" {
			flags = value
			return true
		}
		isGo := strings.HasPrefix(key, "GO") && !strings.HasPrefix(key, "GOOGLE")
		return !isGo && !slices.Contains(kept, key) && !strings.HasSuffix(strings.ToLower(key), "_proxy")
	})
	// Without the paths of the checkouts, both share what is compiled, but for the packages that differ.
	return append(env, "GOFLAGS="+strings.TrimSpace(flags+" -trimpath"),
		"PULUMI_HOME="+p.home(), "PULUMI_BACKEND_URL=file://"+p.backend(), "PULUMI_CONFIG_PASSPHRASE=preview",
		"PULUMI_SKIP_UPDATE_CHECK=true", "PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true", "PROXMOX_VE_API_TOKEN="+config.ProxmoxPlaceholder,
		"KUBECONFIG="+filepath.Join(p.folder, "no-kubeconfig"), "TALOSCONFIG="+filepath.Join(p.folder, "no-talosconfig"))
}

// writeProject writes the project file of the checkout, with the checkout as the place of the program.
func (p *Project) writeProject() error {
	text, err := os.ReadFile(filepath.Join(p.checkout, "Pulumi.yaml"))
	if err != nil {
		return err
	}
	project := map[string]any{}
	if err := yaml.Unmarshal(text, &project); err != nil {
		return fmt.Errorf("Pulumi.yaml: %w", err)
	}
	project["main"] = p.checkout
	project["runtime"] = map[string]any{"name": "go", "options": map[string]any{"buildTarget": p.binary()}}
	delete(project, "backend")
	delete(project, "stackConfigDir")
	delete(project, "options") // such as a refresh, which would ask providers for what exists
	p.name, _ = project["name"].(string)
	if text, err = yaml.Marshal(project); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.folder, "Pulumi.yaml"), text, 0o600)
}

// Preview runs the program for one stack of the checkout.
func (p *Project) Preview(ctx context.Context, declared *cluster.Cluster, stackFile []byte) report.Program {
	start := time.Now()
	outcome := p.preview(ctx, declared, stackFile)
	outcome.Seconds = time.Since(start).Seconds()
	return outcome
}

func (p *Project) preview(ctx context.Context, declared *cluster.Cluster, stackFile []byte) report.Program {
	stack := declared.Stack
	file, needed, err := p.secretsOf(declared, stackFile)
	if err == nil {
		err = p.writeStackFile(stack, withoutExisting(file))
	}
	if err != nil {
		return failed("stack file", err, nil)
	}
	if out, err := p.run(ctx, p.folder, "pulumi", "stack", "init", "--non-interactive", "--stack", stack); err != nil {
		return failed("pulumi stack init", err, out)
	}
	if out, err := p.setSecrets(ctx, stack, needed, p.secrets); err != nil {
		return failed("pulumi config set-all", err, out)
	}
	return p.runPreview(ctx, stack)
}

// lifecycleKey is the section of the stack file with the keys ofExisting, which the program refuses for a cluster that does not exist.
const lifecycleKey = "lifecycle"

var ofExisting = []string{"certificateAuthorities", "skip"}

// withoutExisting returns a stack file for an empty backend. What the keys of an existing cluster change, the report finds in the stack
// file.
func withoutExisting(file map[string]any) map[string]any {
	values, _ := file["config"].(map[string]any)
	key, lifecycle := lifecycleOf(values)
	if lifecycle == nil {
		return file
	}
	file, values, lifecycle = maps.Clone(file), maps.Clone(values), maps.Clone(lifecycle)
	for _, key := range ofExisting {
		delete(lifecycle, key)
	}
	file["config"], values[key] = values, lifecycle
	return file
}

// lifecycleOf returns the section and its key, which may be without the namespace. As in any stack file, the section may be text.
func lifecycleOf(values map[string]any) (key string, section map[string]any) {
	key = config.Namespace + ":" + lifecycleKey
	if values[key] == nil {
		key = lifecycleKey
	}
	section, _ = values[key].(map[string]any)
	if text, is := values[key].(string); is {
		_ = yaml.Unmarshal([]byte(text), &section) // the check names what cannot be read
	}
	return key, section
}

func (p *Project) stackFile(stack string) string {
	return filepath.Join(p.folder, "Pulumi."+stack+".yaml")
}

func (p *Project) writeStackFile(stack string, file map[string]any) error {
	text, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	return os.WriteFile(p.stackFile(stack), text, 0o600)
}

// setSecrets sets secrets of a stack, as arguments, because they are placeholders.
func (p *Project) setSecrets(ctx context.Context, stack string, needed []string, secrets config.Placeholders) (out []byte, err error) {
	if len(needed) == 0 {
		return nil, nil
	}
	set := []string{"pulumi", "config", "set-all", "--non-interactive", "--stack", stack}
	for _, key := range needed {
		set = append(set, "--secret", config.Namespace+":"+key+"="+secrets[key])
	}
	return p.run(ctx, p.folder, set...)
}

// runPreview runs the program on the backend as it is.
func (p *Project) runPreview(ctx context.Context, stack string) report.Program {
	// As a stream of events: for the whole document, the CLI panics where the input of a provider that is not configured yet is a secret that
	// is not known yet (3.250, pkg/backend/display, massagePropertyValue).
	out, err := p.run(ctx, p.folder, "pulumi", "preview", "--non-interactive", "--json", "--color=never", "--stack", stack)
	outcome, read := parse(out, p.checkout)
	switch {
	case read != nil:
		return failed("pulumi preview", errors.Join(err, read), out)
	case err != nil && len(outcome.Problems) == 0:
		return failed("pulumi preview", err, out)
	}
	return outcome
}

func failed(what string, err error, out []byte) report.Program {
	return report.Program{Ran: true, Problems: []report.Problem{{Text: strings.TrimSpace(fmt.Sprintf("%s: %v %s", what, err, tail(out)))}}}
}

// secretsOf returns the stack file without its encrypted values, and the keys of the secrets that are set instead, sorted.
func (p *Project) secretsOf(declared *cluster.Cluster, stackFile []byte) (file map[string]any, needed []string, err error) {
	file = map[string]any{}
	if err := yaml.Unmarshal(stackFile, &file); err != nil {
		return nil, nil, err
	}
	for _, key := range []string{"encryptionsalt", "encryptedkey", "secretsprovider"} {
		delete(file, key)
	}
	needed = declared.MissingSecrets()
	values, _ := file["config"].(map[string]any)
	for key, value := range values {
		if encrypted, is := value.(map[string]any); is && len(encrypted) == 1 && encrypted["secure"] != nil {
			delete(values, key)
			needed = append(needed, strings.TrimPrefix(key, config.Namespace+":"))
		}
	}
	slices.Sort(needed)
	needed = slices.Compact(needed)
	for _, key := range needed {
		if p.secrets[key] == "" {
			return nil, nil, fmt.Errorf("%s: there is no placeholder for this secret; add it to stacks/config/placeholders.go", key)
		}
	}
	return file, needed, nil
}

// run runs a command. If it fails, its error output goes to this process's.
func (p *Project) run(ctx context.Context, folder string, argv ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Dir, command.Env = folder, p.env
	command.WaitDelay = 10 * time.Second
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); err != nil {
		return append(out.Bytes(), problems.Bytes()...), err
	}
	return out.Bytes(), nil
}

// tail returns the end of an output.
func tail(out []byte) string {
	const most = 2000
	text := strings.TrimSpace(string(out))
	return text[max(0, len(text)-most):]
}

// How Pulumi writes a value that is known only later, and the key that marks an object which stands for a secret (pkg/resource/stack,
// computedValuePlaceholder, and sdk/go/common/resource, SigKey and SecretSig).
const (
	unknown   = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
	signature = "4dabf18193072939515e22adb298388d"
	secret    = "1b47061264138c4ac30d75fd1eb44270" //nolint:gosec // a mark
)

const typeStack = "pulumi:pulumi:Stack"

// resourceState is the part of a resource's state that is read.
type resourceState struct {
	URN     string         `json:"urn"`
	Type    string         `json:"type"`
	Parent  string         `json:"parent"`
	Protect bool           `json:"protect"`
	Retain  bool           `json:"retainOnDelete"`
	Inputs  map[string]any `json:"inputs"`
}

// event is the part of an engine's event that is read.
type event struct {
	Resource *struct {
		Metadata struct {
			Op   string         `json:"op"`
			Keys []string       `json:"keys"` // inputs for which a resource is replaced
			Old  *resourceState `json:"old"`
			New  *resourceState `json:"new"`
		} `json:"metadata"`
	} `json:"resourcePreEvent"`
	Outputs *struct {
		Metadata struct {
			New *struct {
				Type    string         `json:"type"`
				Outputs map[string]any `json:"outputs"`
			} `json:"new"`
		} `json:"metadata"`
	} `json:"resOutputsEvent"`
	Diagnostic *struct {
		Message   string `json:"message"`
		Severity  string `json:"severity"`
		Ephemeral bool   `json:"ephemeral"`
	} `json:"diagnosticEvent"`
	Summary *struct{} `json:"summaryEvent"`
}

// parse reads the engine's events, one JSON object a line. Other lines are those of plugins. Paths of the checkout are replaced, because
// both checkouts have others.
func parse(out []byte, checkout string) (report.Program, error) {
	outcome := report.Program{Ran: true}
	parents := map[string]string{}
	var urns []string
	complete := false
	var published map[string]any
	for line := range bytes.Lines(out) {
		var one event
		if json.Unmarshal(line, &one) != nil {
			continue
		}
		complete = complete || one.Summary != nil
		if said := one.Diagnostic; said != nil && !said.Ephemeral {
			diagnose(&outcome, said.Severity, strings.TrimSpace(said.Message))
		}
		if one.Outputs != nil && one.Outputs.Metadata.New != nil && one.Outputs.Metadata.New.Type == typeStack {
			published, _ = shown(one.Outputs.Metadata.New.Outputs, checkout).(map[string]any) // the last event is complete
		}
		if one.Resource != nil {
			if operation := one.operation(checkout); operation != nil && operation.Type != typeStack {
				outcome.Operations = append(outcome.Operations, *operation)
			}
		}
		if one.Resource == nil || one.Resource.Metadata.New == nil || one.Resource.Metadata.New.Type == typeStack {
			continue
		}
		state := one.Resource.Metadata.New
		parents[state.URN] = state.Parent
		inputs, _ := shown(state.Inputs, checkout).(map[string]any)
		urns = append(urns, state.URN)
		outcome.Resources = append(outcome.Resources, report.Resource{
			Type: state.Type, Name: name(state.URN), Protect: state.Protect, Inputs: inputs,
		})
	}
	if len(published) > 0 {
		// They name what the stack assumes of other stacks, which is in the secret input of its gates.
		urns = append(urns, typeStack+"::outputs")
		outcome.Resources = append(outcome.Resources, report.Resource{Type: typeStack, Name: "outputs", Inputs: published})
	}
	for i, urn := range urns {
		outcome.Resources[i].Root = name(root(urn, parents))
	}
	if !complete && len(outcome.Problems) == 0 {
		return outcome, errors.New("ended without a summary")
	}
	return outcome, nil
}

// diagnose adds a message of the engine, of the program or of a plugin.
func diagnose(outcome *report.Program, severity, message string) {
	switch {
	case message == "":
	case severity == "error":
		outcome.Problems = append(outcome.Problems, report.Problem{Text: message})
	case severity == "warning":
		outcome.Warnings = append(outcome.Warnings, message)
	}
}

// root returns the ancestor of a resource that is directly below the stack.
func root(urn string, parents map[string]string) string {
	for range parents {
		parent := parents[urn]
		if parent == "" || strings.Contains(parent, "::pulumi:pulumi:Stack::") {
			break
		}
		urn = parent
	}
	return urn
}

// name returns the name in a URN.
func name(urn string) string { return urn[strings.LastIndex(urn, "::")+len("::"):] }

// shown returns a value of the output as it is displayed.
func shown(value any, checkout string) any {
	switch value := value.(type) {
	case map[string]any:
		if value[signature] == secret {
			return report.Hidden
		}
		tree := map[string]any{}
		for key, below := range value {
			if strings.HasPrefix(key, "__") { // the engine's own
				continue
			}
			tree[key] = shown(below, checkout)
		}
		return tree
	case []any:
		list := make([]any, len(value))
		for i, below := range value {
			list[i] = shown(below, checkout)
		}
		return list
	case string:
		if document := map[string]any{}; strings.HasPrefix(value, "{") && json.Unmarshal([]byte(value), &document) == nil {
			return shown(document, checkout) // so that a difference names its parts
		}
		if strings.Contains(value, unknown) {
			return strings.ReplaceAll(value, unknown, report.Later)
		}
		return strings.ReplaceAll(value, checkout, ".")
	}
	return value
}
