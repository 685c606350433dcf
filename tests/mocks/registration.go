package mocks

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// Registration is the program's request to the engine to register a resource.
type Registration struct {
	Index  int    // position in the order of registration
	URN    string // URN that the SDK got for the resource
	Name   string
	Type   string // type token
	Parent string // URN; the stack's own URN at the top
	Custom bool   // managed by a provider; false for components
	Read   bool   // read (a Get function or .get), not managed

	// Inputs contain secrets as secret values and, in a dry run, unknown values as computed values.
	Inputs resource.PropertyMap

	Provider             string              // "URN::ID" of the explicit provider; "" means the default one
	Dependencies         []string            // URNs of DependsOn and of the inputs, sorted
	PropertyDependencies map[string][]string // input name → URNs
	DeletedWith          string              // URN
	Protect              bool                // own or inherited
	RetainOnDelete       bool

	IgnoreChanges           []string
	ReplaceOnChanges        []string
	AdditionalSecretOutputs []string
	BeforeCreate            []string // names of the hooks that run before the creation
	Aliases                 []*pulumirpc.Alias
	CustomTimeouts          *pulumirpc.RegisterResourceRequest_CustomTimeouts // nil means the provider's defaults

	// RPC is the whole request, for options without a field here; nil if Read.
	RPC *pulumirpc.RegisterResourceRequest
}

func newRegistration(args pulumi.MockResourceArgs) Registration {
	reg := Registration{
		Name:     args.Name,
		Type:     args.TypeToken,
		Custom:   args.Custom,
		Inputs:   args.Inputs,
		Provider: args.Provider,
	}
	if read := args.ReadRPC; read != nil {
		reg.Read = true
		reg.Parent = read.GetParent()
		reg.Dependencies = slices.Sorted(slices.Values(read.GetDependencies()))
		return reg
	}
	rpc := args.RegisterRPC
	reg.RPC = rpc
	reg.Parent = rpc.GetParent()
	reg.Dependencies = slices.Sorted(slices.Values(rpc.GetDependencies()))
	reg.PropertyDependencies = map[string][]string{}
	for property, deps := range rpc.GetPropertyDependencies() {
		if len(deps.GetUrns()) > 0 {
			reg.PropertyDependencies[property] = slices.Sorted(slices.Values(deps.GetUrns()))
		}
	}
	reg.DeletedWith = rpc.GetDeletedWith()
	reg.Protect = rpc.GetProtect()
	reg.RetainOnDelete = rpc.GetRetainOnDelete()
	reg.IgnoreChanges = rpc.GetIgnoreChanges()
	reg.ReplaceOnChanges = rpc.GetReplaceOnChanges()
	reg.AdditionalSecretOutputs = rpc.GetAdditionalSecretOutputs()
	reg.BeforeCreate = rpc.GetHooks().GetBeforeCreate()
	reg.Aliases = rpc.GetAliases()
	reg.CustomTimeouts = rpc.GetCustomTimeouts()
	return reg
}

// ProviderURN returns the URN of the explicit provider, without its id; "" means the default provider.
func (r Registration) ProviderURN() string {
	i := strings.LastIndex(r.Provider, "::")
	if i < 0 {
		return ""
	}
	return r.Provider[:i]
}

// Input returns the input at a dotted path, such as "values.cluster.name" or "spec.nodes[0]", with all secrets unwrapped. It is nil if
// the input is missing or unknown.
func (r Registration) Input(path string) any {
	v := resource.NewProperty(r.Inputs)
	segments, err := resource.ParsePropertyPath(path)
	if err != nil {
		return nil
	}
	for _, segment := range segments {
		next, ok := (resource.PropertyPath{segment}).Get(unwrap(v))
		if !ok {
			return nil
		}
		v = next
	}
	return reveal(v).Mappable()
}

// SecretInput reports whether the input at a dotted path exists and is secret, or is part of a secret.
func (r Registration) SecretInput(path string) bool {
	v := resource.NewProperty(r.Inputs)
	segments, err := resource.ParsePropertyPath(path)
	if err != nil {
		return false
	}
	secret := false
	for _, segment := range segments {
		next, ok := (resource.PropertyPath{segment}).Get(unwrap(v))
		if !ok {
			return false
		}
		secret = secret || next.IsSecret()
		v = next
	}
	return secret
}

// PlainPaths returns the paths of the inputs that contain the text in plain text, which means outside all secrets. Map keys are
// searched, too.
func (r Registration) PlainPaths(text string) []string {
	var paths []string
	var walk func(path string, v resource.PropertyValue)
	walk = func(path string, v resource.PropertyValue) {
		switch {
		case v.IsSecret():
		case v.IsOutput():
			if out := v.OutputValue(); !out.Secret {
				walk(path, out.Element)
			}
		case v.IsString():
			if strings.Contains(v.StringValue(), text) {
				paths = append(paths, path)
			}
		case v.IsArray():
			for _, e := range v.ArrayValue() {
				walk(path+"[]", e)
			}
		case v.IsObject():
			for key, e := range v.ObjectValue() {
				at := strings.TrimPrefix(path+"."+string(key), ".")
				if strings.Contains(string(key), text) {
					paths = append(paths, at)
				}
				walk(at, e)
			}
		case v.IsAsset():
			if a := v.AssetValue(); strings.Contains(a.Text, text) {
				paths = append(paths, path)
			}
		}
	}
	walk("", resource.NewProperty(r.Inputs))
	slices.Sort(paths)
	return paths
}

func unwrap(v resource.PropertyValue) resource.PropertyValue {
	for v.IsSecret() {
		v = v.SecretValue().Element
	}
	return v
}

// reveal unwraps all secrets in a value.
func reveal(v resource.PropertyValue) resource.PropertyValue {
	v = unwrap(v)
	switch {
	case v.IsArray():
		elements := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			elements[i] = reveal(e)
		}
		return resource.NewProperty(elements)
	case v.IsObject():
		object := resource.PropertyMap{}
		for key, e := range v.ObjectValue() {
			object[key] = reveal(e)
		}
		return resource.NewProperty(object)
	case v.IsComputed():
		return resource.NewNullProperty()
	}
	return v
}
