// Package mocks records the registrations of a Pulumi program, so that tests can check the graph: resources, order, inputs, options
// and edges.
//
// It replaces the engine and the providers, at the level of pulumi.WithMocks. It does not model duplicate names, provider-side
// validation and defaults, hooks other than those before a creation or an update, diffs, and the values of stack outputs and of a
// component's outputs.
package mocks

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// Recorder runs a program and records its registrations. The zero value is ready for use: the outputs of every resource are then its
// inputs, and every call returns nothing. Use one Recorder for one run.
type Recorder struct {
	Project string            // project name; "" means "slipway"
	Stack   string            // stack name; "" means "infra"
	Config  map[string]string // configuration by full key ("slipway:cluster"); structured values as JSON
	Secrets map[string]string // like Config, for keys that are secret
	DryRun  bool              // run as `pulumi preview`: ids, and outputs that are not inputs, stay unknown

	// OnResource, if non-nil, answers for the provider: the outputs are the inputs, overridden by the properties that it returns. The id of
	// the resource is the property id, or its name with -id.
	// Its error is the provider's error. It also runs in a dry run, in which only the error is used. It runs concurrently.
	OnResource func(Registration) (resource.PropertyMap, error)

	// OnCall, if non-nil, answers invokes; with nil, they return nothing. It runs concurrently.
	OnCall func(pulumi.MockCallArgs) (resource.PropertyMap, error)

	// RunHooks makes the recorder call the hooks that are bound to a resource's creation like the engine: right before the creation,
	// and in a dry run only hooks with OnDryRun. Default false: hooks are only recorded, because they send requests.
	RunHooks bool

	// Former has the outputs of resources that exist already, by their names: the hooks before their update are called, in the place of those
	// before their creation.
	Former map[string]resource.PropertyMap

	mu        sync.Mutex
	hooks     []Hook
	resources []Registration
	calls     []Call
}

// Run executes the program once and returns its error, after all its registrations have ended.
func (r *Recorder) Run(program pulumi.RunFunc) error {
	if len(r.Resources()) != 0 {
		return errors.New("mocks: a Recorder records one run; use a new one")
	}
	return r.run(program)
}

func (r *Recorder) configure(info *pulumi.RunInfo) {
	info.DryRun = r.DryRun
	info.Config = map[string]string{}
	maps.Copy(info.Config, r.Config)
	maps.Copy(info.Config, r.Secrets)
	info.ConfigSecretKeys = slices.Sorted(maps.Keys(r.Secrets))
}

// Resources returns the registrations so far, including components, in the order of registration. Without an edge between two
// resources, their order differs from run to run: check edges with After, not positions.
func (r *Recorder) Resources() []Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.resources)
}

// Call is an invoke.
type Call struct {
	pulumi.MockCallArgs
	Version string // version of the plugin that is asked for
}

// Calls returns the invokes made so far, in order.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Hooks returns the resource hooks registered so far. Their order differs from run to run.
func (r *Recorder) Hooks() []Hook {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.hooks)
}

// Names returns the names of all registrations, sorted, for comparisons of two runs.
func (r *Recorder) Names() []string {
	var names []string
	for _, reg := range r.Resources() {
		names = append(names, reg.Type+" "+reg.Name)
	}
	slices.Sort(names)
	return names
}

// Find returns the resources that match, in the order of registration.
func (r *Recorder) Find(match func(Registration) bool) []Registration {
	var found []Registration
	for _, reg := range r.Resources() {
		if match(reg) {
			found = append(found, reg)
		}
	}
	return found
}

// OfType returns the resources of one type token, in the order of registration.
func (r *Recorder) OfType(token string) []Registration {
	return r.Find(func(reg Registration) bool { return reg.Type == token })
}

// TB is the part of testing.TB that the helpers below need.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Resource returns the one resource of that name, and ends the test if there is none or more than one.
func (r *Recorder) Resource(t TB, name string) Registration {
	t.Helper()
	return r.one(t, "named "+name, func(reg Registration) bool { return reg.Name == name })
}

// Only returns the one resource of that type, and ends the test if there is none or more than one.
func (r *Recorder) Only(t TB, token string) Registration {
	t.Helper()
	return r.one(t, "of type "+token, func(reg Registration) bool { return reg.Type == token })
}

func (r *Recorder) one(t TB, what string, match func(Registration) bool) Registration {
	t.Helper()
	found := r.Find(match)
	if len(found) != 1 {
		t.Fatalf("%d resources %s, want one; registered: %s", len(found), what, strings.Join(r.Names(), ", "))
		return Registration{}
	}
	return found[0]
}

func (r *Recorder) project() string { return or(r.Project, "slipway") }
func (r *Recorder) stack() string   { return or(r.Stack, "infra") }

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// monitor has the methods that answer a program, which Recorder does not export.
type monitor struct{ *Recorder }

func (m monitor) call(args Call) (resource.PropertyMap, error) {
	m.mu.Lock()
	m.calls = append(m.calls, args)
	m.mu.Unlock()
	if m.OnCall == nil {
		return resource.PropertyMap{}, nil
	}
	return m.OnCall(args.MockCallArgs)
}

func (m monitor) NewResource(args pulumi.MockResourceArgs) (string, resource.PropertyMap, error) {
	reg := newRegistration(args)
	reg.URN = m.urn(reg)
	m.mu.Lock()
	reg.Index = len(m.resources)
	m.resources = append(m.resources, reg)
	m.mu.Unlock()

	var outputs resource.PropertyMap
	if m.OnResource != nil {
		var err error
		if outputs, err = m.OnResource(reg); err != nil {
			return "", nil, err
		}
	}
	if !args.Custom && args.ReadRPC == nil {
		return "", resource.PropertyMap{}, nil // a component's only state is its registered outputs
	}
	state := args.Inputs.Copy()
	if m.DryRun {
		return args.ID, state, nil
	}
	maps.Copy(state, outputs)
	for _, key := range reg.AdditionalSecretOutputs { // the engine does this
		if v, ok := state[resource.PropertyKey(key)]; ok && !v.IsSecret() {
			state[resource.PropertyKey(key)] = resource.MakeSecret(v)
		}
	}
	id := args.ID
	if given, has := state["id"]; has && given.IsString() {
		id = given.StringValue()
	}
	return or(id, reg.Name+"-id"), state, nil
}

// urn returns a registration's URN in the engine's form, without the types of its parent's parents.
func (m monitor) urn(reg Registration) string {
	var parentType tokens.Type
	if parent := resource.URN(reg.Parent); parent != "" && parent.QualifiedType() != resource.RootStackType {
		parentType = parent.QualifiedType()
	}
	return string(resource.NewURN(tokens.QName(m.stack()), tokens.PackageName(m.project()), parentType,
		tokens.Type(reg.Type), reg.Name))
}
