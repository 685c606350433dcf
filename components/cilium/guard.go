package cilium

import (
	"fmt"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// remember keeps the mode in the stack's state: a stash gives back the first value that it was given, in previews, too.
func (c *CiliumCore) remember(ctx *pulumi.Context) error {
	var err error
	c.guard, err = pulumi.NewStash(ctx, c.name+"-mode", &pulumi.StashArgs{Input: pulumi.String(string(c.mode))}, pulumi.Parent(c))
	return err
}

// Guard is the resource that remembers the mode; nil if none was given. Replacing it is how a switch is made known.
func (c *CiliumCore) Guard() pulumi.Resource {
	if c.guard == nil {
		return nil
	}
	return c.guard
}

// unlessSwitched is the value, or an error in a stack that was brought up in another mode. Whatever acts on the mode has
// to take such a value, for an error that nothing takes is lost.
func (c *CiliumCore) unlessSwitched(value string) pulumi.StringOutput {
	if c.guard == nil {
		return pulumi.String(value).ToStringOutput()
	}
	return pulumi.All(c.guard.Output, c.guard.URN()).ApplyT(func(known []any) (string, error) {
		// Without a first value there is no state to disagree with.
		if first, ok := known[0].(string); ok && Mode(first) != c.mode {
			return "", &switchedError{from: Mode(first), to: c.mode, guard: fmt.Sprint(known[1])}
		}
		return value, nil
	}).(pulumi.StringOutput)
}

// switchedError refuses to switch a running cluster, and says how it is done.
type switchedError struct {
	from, to Mode
	guard    string // URN
}

func (e *switchedError) Error() string {
	way := "run pulumi up --replace '" + e.guard + "', which takes the objects over as they are"
	if e.to == ModeInline {
		way += ", then kubectl -n " + ReleaseNamespace + " delete secret -l owner=helm,name=" + ReleaseName
	}
	return fmt.Sprintf("cilium.mode: %s, but this cluster was brought up with %s; set it back, or switch by hand: %s (docs/operations.md)",
		e.to, e.from, way)
}
