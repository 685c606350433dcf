package helm

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/internals"

	"github.com/slipway-platform/slipway/components/internal/helm/manifests"
)

// showDifference prints what a change of the owner changes in the release. It prints nothing if the owner stays.
func (a *ReleaseArgs) showDifference(ctx *pulumi.Context, change *pulumi.ResourceHookArgs) {
	was, is := text(change.OldInputs["description"]), text(change.NewInputs["description"])
	if was == is {
		return
	}
	wasEngine := was != ""
	what := fmt.Sprintf("Helm release %s/%s goes from Pulumi to %s", a.Service.Namespace, a.Service.Name, strings.TrimPrefix(is, ownedBy))
	before, after := installed(change.OldInputs), manifests.Chart{
		Chart: a.Service.Chart, Version: a.Service.Version, Repository: a.Service.Repository,
	}
	if wasEngine {
		engine := strings.TrimPrefix(was, ownedBy)
		what = fmt.Sprintf("Helm release %s/%s comes back from %s to Pulumi", a.Service.Namespace, a.Service.Name, engine)
	}
	var known bool
	after.Values, known = a.resolved(ctx.Context())
	if wasEngine && a.Git != nil {
		before.Chart, before.Version, before.Repository = a.Git.Chart, a.Git.Version, a.Git.Repository
	}
	switch {
	case !known:
		say(ctx, what+"; not compared: values that Slipway sets are known only during the run")
		return
	case wasEngine && a.Git == nil:
		say(ctx, what+"; not compared: its file is not in the repository any more")
		return
	case wasEngine:
		// What Git declares, with what Slipway sets: Pulumi's values without the user's, and the user's values in Git.
		own, err := a.withGitValues(after.Values)
		if err != nil {
			say(ctx, fmt.Sprintf("%s; not compared: %v", what, err))
			return
		}
		before.Values = own
	}
	if len(manifests.DifferentValues(before, after)) == 0 {
		_ = ctx.Log.Info(what+"; chart, version and values are the same on both sides", nil)
		return
	}
	found, harmless := a.compared(ctx, before, after)
	if harmless {
		_ = ctx.Log.Info(what+"; "+found, nil)
		return
	}
	say(ctx, what+"; "+found)
}

// compared returns the differences as text, and whether they leave every object as it is. There are some.
func (a *ReleaseArgs) compared(ctx *pulumi.Context, before, after manifests.Chart) (found string, harmless bool) {
	values := "these differ:\n  " + strings.Join(manifests.DifferentValues(before, after), "\n  ")
	if a.Renderer == nil {
		return values, false
	}
	var sides [2][]map[string]any
	for i, side := range []manifests.Chart{before, after} {
		var err error
		sides[i], err = Template(ctx, &TemplateArgs{
			Name: a.Service.Name, Namespace: a.Service.Namespace, Chart: side.Chart, Version: side.Version, Repository: side.Repository,
			Values: side.Values,
		}, pulumi.Provider(a.Renderer))
		if err != nil {
			return fmt.Sprintf("%s\nthe objects were not compared: %v", values, err), false
		}
	}
	objects := manifests.DifferentObjects(sides[0], sides[1])
	if len(objects) == 0 {
		return "every object is the same on both sides; of the values, " + values, true
	}
	return values + "\nobjects that differ:\n  " + strings.Join(objects, "\n  "), false
}

func say(ctx *pulumi.Context, text string) {
	_ = ctx.Log.Warn(text, nil) // an engine that is gone shows nothing
}

// installed returns what Pulumi has installed, from the inputs in the state.
func installed(inputs resource.PropertyMap) manifests.Chart {
	side := manifests.Chart{Chart: text(inputs["chart"]), Version: text(inputs["version"])}
	if options := inputs["repositoryOpts"]; options.IsObject() {
		side.Repository = text(options.ObjectValue()["repo"])
	}
	side.Values, _ = masked(inputs["values"], false).(map[string]any)
	return side
}

// masked returns a value in plain Go, with secrets masked.
func masked(value resource.PropertyValue, secret bool) any {
	switch {
	case value.IsSecret():
		return masked(value.SecretValue().Element, true)
	case value.IsOutput():
		return masked(value.OutputValue().Element, secret || value.OutputValue().Secret)
	case value.IsObject():
		tree := map[string]any{}
		for key, below := range value.ObjectValue() {
			tree[string(key)] = masked(below, secret)
		}
		return tree
	case value.IsArray():
		list := []any{}
		for _, below := range value.ArrayValue() {
			list = append(list, masked(below, secret))
		}
		return list
	case secret:
		return mask(value.Mappable())
	}
	return value.Mappable()
}

// mask returns a stand-in for a secret, which is the same for the same secret. It is base64, because charts decode certificates.
func mask(value any) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(value)))
	return base64.StdEncoding.EncodeToString([]byte(manifests.Masked + fmt.Sprintf("%x", sum[:6])))
}

// resolved returns the values of the arguments with secrets masked, and whether all are known.
func (a *ReleaseArgs) resolved(ctx context.Context) (map[string]any, bool) {
	known := true
	values, _ := resolve(ctx, toMap(a.Values), &known).(map[string]any)
	return values, known
}

func resolve(ctx context.Context, input any, known *bool) any {
	switch input := input.(type) {
	case pulumi.Map:
		tree := map[string]any{}
		for key, below := range input {
			tree[key] = resolve(ctx, below, known)
		}
		return tree
	case pulumi.Array:
		list := []any{}
		for _, below := range input {
			list = append(list, resolve(ctx, below, known))
		}
		return list
	case pulumi.Output:
		result, err := internals.UnsafeAwaitOutput(ctx, input)
		if err != nil || !result.Known {
			*known = false
			return nil
		}
		if result.Secret {
			return mask(result.Value)
		}
		return plain(result.Value)
	}
	return plain(input)
}

// plain returns a value as JSON would give it back.
func plain(value any) any {
	var tree any
	encoded, err := json.Marshal(value)
	if err != nil || json.Unmarshal(encoded, &tree) != nil {
		return value
	}
	return tree
}

// withGitValues returns the values with the user's values in Git instead of those in the stack file.
func (a *ReleaseArgs) withGitValues(values map[string]any) (map[string]any, error) {
	own, _ := plain(values).(map[string]any)
	mine, err := a.Service.UserValues.Tree()
	if err != nil {
		return nil, err
	}
	remove(own, mine)
	return a.Git.Values.MergedInto(own)
}

// remove removes the leaves of one tree from another.
func remove(from, leaves map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(leaves)) {
		below, isMap := leaves[key].(map[string]any)
		inner, both := from[key].(map[string]any)
		if isMap && both {
			remove(inner, below)
			if len(inner) > 0 {
				continue
			}
		}
		delete(from, key)
	}
}

func text(value resource.PropertyValue) string {
	if value.IsString() {
		return value.StringValue()
	}
	return ""
}
