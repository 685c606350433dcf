package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/preview/report"
	"github.com/slipway-platform/slipway/stacks/config"
)

// State is the state of a stack without its secrets, as `pulumi stack export` writes it.
type State struct {
	Stack, Project string
	Time           string // of the last change; RFC 3339

	version    any
	deployment map[string]any
}

// typeProviders is what the types of providers begin with.
const typeProviders = "pulumi:providers:"

// ReadStates reads the state in a file, or those in all files *.json of a folder, by their stacks.
func ReadStates(path string) (map[string]*State, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%s: %w: no file *.json; write one with: pulumi stack export --stack STACK --file %s/STACK.json",
				path, fs.ErrNotExist, path)
		}
	}
	states := map[string]*State{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		state, err := readState(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if states[state.Stack] != nil {
			return nil, fmt.Errorf("%s: there is another file of stack %s; remove one", file, state.Stack)
		}
		states[state.Stack] = state
	}
	return states, nil
}

// readState reads what `pulumi stack export` has written. Secrets are dropped, also those that were exported in plain text.
func readState(text []byte) (*State, error) {
	var file struct {
		Version    any            `json:"version"`
		Deployment map[string]any `json:"deployment"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	resources, _ := file.Deployment["resources"].([]any)
	if len(resources) == 0 {
		return nil, errors.New("no resources of a deployment; write the file with: pulumi stack export --stack STACK --file FILE")
	}
	state := &State{version: file.Version, deployment: file.Deployment}
	for _, one := range resources {
		resource, _ := one.(map[string]any)
		urn, _ := resource["urn"].(string)
		stack, project, found := ofURN(urn)
		if !found {
			return nil, fmt.Errorf("%q is no URN of a resource", urn)
		}
		state.Stack, state.Project = stack, project
		withoutSecrets(resource)
	}
	manifest, _ := file.Deployment["manifest"].(map[string]any)
	state.Time, _ = manifest["time"].(string)
	if when, err := time.Parse(time.RFC3339, state.Time); err == nil {
		state.Time = when.UTC().Format(time.RFC3339)
	}
	delete(state.deployment, "pending_operations") // an interrupted one would make the import fail
	return state, nil
}

// ofURN returns the stack and the project in a URN, urn:pulumi:STACK::PROJECT::TYPE::NAME.
func ofURN(urn string) (stack, project string, found bool) {
	rest, found := strings.CutPrefix(urn, "urn:pulumi:")
	parts := strings.SplitN(rest, "::", 3)
	if !found || len(parts) < 3 {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// withoutSecrets replaces the secrets of a resource in the state: no key is needed to read it, and nothing uses the secrets.
//
//   - An output becomes unknown, and so does everything that the program makes of it: no provider can take it for a real value.
//   - An input of a provider becomes unknown: Pulumi then does not configure it, and asks it nothing. So nobody connects to the cluster.
//   - Every other input becomes a secret text. It is not compared.
func withoutSecrets(resource map[string]any) {
	token, _ := resource["type"].(string)
	for key, value := range resource {
		switch {
		case key == "outputs", key == "inputs" && strings.HasPrefix(token, typeProviders):
			resource[key] = replaced(value, unknown)
		default:
			resource[key] = replaced(value, map[string]any{signature: secret, "plaintext": `"placeholder"`})
		}
	}
	// The Kubernetes plugin keeps the inputs in the outputs, and reads them there.
	if outputs, is := resource["outputs"].(map[string]any); is && outputs["__inputs"] == unknown {
		inputs, err := json.Marshal(resource["inputs"])
		if err == nil {
			outputs["__inputs"] = map[string]any{signature: secret, "plaintext": string(inputs)}
		}
	}
}

// replaced returns a value with its secrets replaced.
func replaced(value, by any) any {
	switch value := value.(type) {
	case map[string]any:
		if value[signature] == secret {
			return by
		}
		for key, below := range value {
			value[key] = replaced(below, by)
		}
	case []any:
		for i, below := range value {
			value[i] = replaced(below, by)
		}
	}
	return value
}

// OnState runs the program for one stack of the checkout on a copy of the stack's state. It comes after Preview of the same stack, whose
// backend it uses. secrets are the placeholders for this run. They are not Preview's: what depends on a secret then differs.
func (p *Project) OnState(
	ctx context.Context, declared *cluster.Cluster, stackFile []byte, state *State, secrets config.Placeholders,
) report.Program {
	start := time.Now()
	outcome := p.onState(ctx, declared, stackFile, state, secrets)
	outcome.Seconds = time.Since(start).Seconds()
	return outcome
}

func (p *Project) onState(
	ctx context.Context, declared *cluster.Cluster, stackFile []byte, state *State, secrets config.Placeholders,
) report.Program {
	file, needed, err := p.secretsOf(declared, stackFile)
	if err == nil {
		err = p.declareExisting(declared.Stack, file)
	}
	if err != nil {
		return failed("stack file", err, nil)
	}
	if state.Project != p.name {
		return failed("state", fmt.Errorf("it is that of project %s, and this one is %s", state.Project, p.name), nil)
	}
	if out, err := p.setSecrets(ctx, declared.Stack, needed, secrets); err != nil {
		return failed("pulumi config set-all", err, out)
	}
	imported := filepath.Join(p.folder, "state."+declared.Stack+".json")
	if err := p.writeState(imported, state); err != nil {
		return failed("state", err, nil)
	}
	out, err := p.run(ctx, p.folder, "pulumi", "stack", "import", "--non-interactive", "--stack", declared.Stack, "--file", imported)
	if err != nil {
		return failed("pulumi stack import", err, out)
	}
	return p.runPreview(ctx, declared.Stack)
}

// declareExisting adds to the stack file of this project what Preview has left out of its section lifecycle.
func (p *Project) declareExisting(stack string, declared map[string]any) error {
	values, _ := declared["config"].(map[string]any)
	key, lifecycle := lifecycleOf(values)
	if lifecycle == nil {
		return nil
	}
	text, err := os.ReadFile(p.stackFile(stack))
	if err != nil {
		return err
	}
	file := map[string]any{} // with what the CLI has added
	if err := yaml.Unmarshal(text, &file); err != nil {
		return err
	}
	has, _ := file["config"].(map[string]any)
	if has == nil {
		return fmt.Errorf("%s: has no config", p.stackFile(stack))
	}
	has[key] = lifecycle
	return p.writeStackFile(stack, file)
}

// writeState writes the state for an import, encrypted with the key of the stack in this project.
func (p *Project) writeState(path string, state *State) error {
	text, err := os.ReadFile(p.stackFile(state.Stack))
	if err != nil {
		return err
	}
	var file struct {
		Salt string `yaml:"encryptionsalt"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return err
	}
	deployment := map[string]any{"secrets_providers": map[string]any{"type": "passphrase", "state": map[string]any{"salt": file.Salt}}}
	for key, value := range state.deployment {
		if key != "secrets_providers" {
			deployment[key] = value
		}
	}
	out, err := json.Marshal(map[string]any{"version": state.version, "deployment": deployment})
	if err != nil {
		return err
	}
	return os.WriteFile(path, out, 0o600)
}

// operation returns what an event says about a resource; nil for an event that is only a part of a replacement.
func (e *event) operation(checkout string) *report.Operation {
	meta := e.Resource.Metadata
	if slices.Contains([]string{"create-replacement", "delete-replaced", "discard-replaced"}, meta.Op) {
		return nil
	}
	one := &report.Operation{Op: meta.Op, Because: meta.Keys}
	for _, state := range []*resourceState{meta.Old, meta.New} {
		if state != nil {
			one.Type, one.Name = state.Type, name(state.URN)
		}
	}
	if meta.Old != nil {
		one.Before, _ = shown(meta.Old.Inputs, checkout).(map[string]any)
		one.Protect = meta.Old.Protect && (meta.New == nil || meta.New.Protect)
		if one.Op == "delete" && meta.Old.Retain { // the engine calls no provider
			one.Op = report.Forget
		}
	}
	if meta.New != nil {
		one.After, _ = shown(meta.New.Inputs, checkout).(map[string]any)
	}
	return one
}
