package mocks_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/tests/mocks"
)

type thing struct {
	pulumi.CustomResourceState
	Text   pulumi.StringOutput `pulumi:"text"`
	Answer pulumi.StringOutput `pulumi:"answer"`
}

func newThing(ctx *pulumi.Context, name string, props pulumi.Map, opts ...pulumi.ResourceOption) (*thing, error) {
	t := &thing{}
	return t, ctx.RegisterResource("test:index:Thing", name, props, t, opts...)
}

type component struct{ pulumi.ResourceState }

func TestRecorder_FollowsEdgesThroughInputsOptionsAndParents(t *testing.T) {
	rec := &mocks.Recorder{}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		first, err := newThing(ctx, "first", pulumi.Map{})
		if err != nil {
			return err
		}
		byInput, err := newThing(ctx, "by-input", pulumi.Map{"text": first.Answer})
		if err != nil {
			return err
		}
		c := &component{}
		if err := ctx.RegisterComponentResource("test:index:Component", "component", c,
			pulumi.DependsOn([]pulumi.Resource{byInput})); err != nil {
			return err
		}
		if _, err := newThing(ctx, "child", pulumi.Map{}, pulumi.Parent(c)); err != nil {
			return err
		}
		_, err = newThing(ctx, "alone", pulumi.Map{})
		return err
	}))

	first, child, alone := rec.Resource(t, "first"), rec.Resource(t, "child"), rec.Resource(t, "alone")
	assert.True(t, rec.After(rec.Resource(t, "by-input"), first))
	assert.True(t, rec.After(child, first), "through the parent's DependsOn")
	assert.False(t, rec.After(first, child))
	assert.False(t, rec.After(alone, first))
	assert.False(t, rec.After(first, first))
	assert.Equal(t, []string{first.URN}, rec.Resource(t, "by-input").PropertyDependencies["text"])
}

func TestRecorder_AnswersWithInputsAndTheProvidersProperties(t *testing.T) {
	rec := &mocks.Recorder{OnResource: func(reg mocks.Registration) (resource.PropertyMap, error) {
		return resource.PropertyMap{"answer": resource.NewProperty("from " + reg.Name)}, nil
	}}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		first, err := newThing(ctx, "first", pulumi.Map{"text": pulumi.String("clear")},
			pulumi.AdditionalSecretOutputs([]string{"answer"}), pulumi.Protect(true))
		if err != nil {
			return err
		}
		_, err = newThing(ctx, "second", pulumi.Map{"text": first.Answer, "plain": first.Text})
		return err
	}))

	second := rec.Resource(t, "second")
	assert.Equal(t, "from first", second.Input("text"))
	assert.True(t, second.SecretInput("text"), "additional secret outputs are secret where they are used")
	assert.Empty(t, second.PlainPaths("from first"))
	assert.Equal(t, []string{"plain"}, second.PlainPaths("clear"))
	assert.True(t, rec.Resource(t, "first").Protect)
}

func TestRecorder_LeavesOutputsUnknownInADryRun(t *testing.T) {
	rec := &mocks.Recorder{DryRun: true, OnResource: func(mocks.Registration) (resource.PropertyMap, error) {
		return resource.PropertyMap{"answer": resource.NewProperty("known")}, nil
	}}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		first, err := newThing(ctx, "first", pulumi.Map{"text": pulumi.String("a")})
		if err != nil {
			return err
		}
		_, err = newThing(ctx, "second", pulumi.Map{
			"id": first.ID(), "answer": first.Answer, "text": first.Text, "sealed": pulumi.ToSecret(first.Answer),
		})
		return err
	}))
	second := rec.Resource(t, "second")
	assert.Nil(t, second.Input("answer"))
	assert.Nil(t, second.Input("id"))
	assert.Equal(t, "a", second.Input("text"))
	assert.True(t, second.SecretInput("sealed"), "both unknown and secret")
	assert.True(t, rec.After(second, rec.Resource(t, "first")))
}

func TestRecorder_AFailedResourceStopsWhatDependsOnIt(t *testing.T) {
	boom := errors.New("boom")
	rec := &mocks.Recorder{OnResource: func(reg mocks.Registration) (resource.PropertyMap, error) {
		if reg.Name == "first" {
			return nil, boom
		}
		return nil, nil
	}}
	err := rec.Run(func(ctx *pulumi.Context) error {
		first, err := newThing(ctx, "first", pulumi.Map{})
		if err != nil {
			return err
		}
		_, err = newThing(ctx, "second", pulumi.Map{}, pulumi.DependsOn([]pulumi.Resource{first}))
		return err
	})
	require.ErrorContains(t, err, "boom")
	assert.Equal(t, []string{"test:index:Thing first"}, rec.Names())
}

func TestRecorder_PassesConfigurationToTheProgram(t *testing.T) {
	rec := &mocks.Recorder{
		Stack:   "apps",
		Config:  map[string]string{"slipway:cluster": `{"id":2}`},
		Secrets: map[string]string{"slipway:password": "hunter2"},
	}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		assert.Equal(t, "apps", ctx.Stack())
		cfg := config.New(ctx, "")
		assert.Equal(t, `{"id":2}`, cfg.Get("cluster"))
		_, err := newThing(ctx, "thing", pulumi.Map{"deep": pulumi.Map{"pw": cfg.RequireSecret("password")}})
		return err
	}))
	thing := rec.Resource(t, "thing")
	assert.True(t, thing.SecretInput("deep.pw"))
	assert.Equal(t, "hunter2", thing.Input("deep.pw"))
	assert.Empty(t, thing.PlainPaths("hunter2"))
}

func TestRecorder_RunsTheHooksOfACreationWithRunHooks(t *testing.T) {
	for name, test := range map[string]struct {
		run, dryRun, onDryRun bool
		want                  int32
	}{
		"up":                          {run: true, want: 1},
		"preview":                     {run: true, dryRun: true},
		"preview, hook made for both": {run: true, dryRun: true, onDryRun: true, want: 1},
		"only recorded":               {},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			rec := &mocks.Recorder{RunHooks: test.run, DryRun: test.dryRun}
			require.NoError(t, rec.Run(hooked(test.onDryRun, func(args *pulumi.ResourceHookArgs) error {
				calls.Add(1)
				assert.Equal(t, "thing", args.Name)
				assert.Equal(t, rec.Hooks()[0].Name, "hook")
				return nil
			})))
			assert.Equal(t, test.want, calls.Load())
			assert.Equal(t, []string{"hook"}, rec.Resource(t, "thing").BeforeCreate)
		})
	}
}

func TestRecorder_AFailedHookPreventsTheCreation(t *testing.T) {
	rec := &mocks.Recorder{RunHooks: true}
	err := rec.Run(hooked(false, func(*pulumi.ResourceHookArgs) error { return errors.New("boom") }))
	require.ErrorContains(t, err, `before hook "hook" failed: boom`)
	assert.Empty(t, rec.Names())
}

func TestRecorder_RunsTheHooksBeforeAnUpdateOfAResourceThatExists(t *testing.T) {
	var former []string
	rec := &mocks.Recorder{RunHooks: true, Former: map[string]resource.PropertyMap{"thing": {"text": resource.NewProperty("before")}}}
	require.NoError(t, rec.Run(func(ctx *pulumi.Context) error {
		before, err := ctx.RegisterResourceHook("hook", func(args *pulumi.ResourceHookArgs) error {
			former = append(former, args.OldOutputs["text"].StringValue())
			return nil
		}, nil)
		if err != nil {
			return err
		}
		hooks := &pulumi.ResourceHookBinding{BeforeUpdate: []*pulumi.ResourceHook{before}}
		if _, err = newThing(ctx, "new", pulumi.Map{}, pulumi.ResourceHooks(hooks)); err != nil {
			return err
		}
		_, err = newThing(ctx, "thing", pulumi.Map{}, pulumi.ResourceHooks(hooks))
		return err
	}))
	assert.Equal(t, []string{"before"}, former)
}

// hooked returns a program with one resource and a hook before its creation.
func hooked(onDryRun bool, hook pulumi.ResourceHookFunction) pulumi.RunFunc {
	return func(ctx *pulumi.Context) error {
		before, err := ctx.RegisterResourceHook("hook", hook, &pulumi.ResourceHookOptions{OnDryRun: onDryRun})
		if err != nil {
			return err
		}
		_, err = newThing(ctx, "thing", pulumi.Map{"text": pulumi.String("a")},
			pulumi.ResourceHooks(&pulumi.ResourceHookBinding{BeforeCreate: []*pulumi.ResourceHook{before}}))
		return err
	}
}
