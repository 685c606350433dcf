package machineconfig

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/siderolabs/gen/xslices"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/cluster"
)

// Violation is one thing that is wrong with one patch of the user's, or with one flag of talos.kubelet.extraArgs. It holds no value of
// the patch, only keys, the names of documents, and what Slipway sets.
type Violation struct {
	Patch   string // the key of the stack that declares the patch or flag, such as talos.patches.all[0]
	Part    string // dotted path of the part of the configuration; "" if the patch as a whole is wrong, and for a flag
	Problem string // what is wrong
	Remedy  string // what to do about it
}

// Error is the violation as one sentence.
func (v Violation) Error() string {
	path := v.Patch
	if v.Part != "" {
		path += ": " + v.Part
	}
	return path + ": " + v.Problem + "; " + v.Remedy
}

// CheckPatches returns everything that is wrong with the user's patches, each once: that Talos cannot use a patch, that the patches
// change what belongs to Slipway, and that a patch in plain text holds what may be a secret. The patches are in the order of
// application. Before them are the flags of talos.kubelet.extraArgs that no patch may set. Validate reports what is wrong without any
// patch.
func CheckPatches(declared *cluster.Cluster) []Violation {
	c := model{*declared}
	found := c.checkOwned()
	return append(c.checkKubeletFlags(), slices.Concat(found, c.checkSecrets(found))...)
}

// fault is something that is wrong with a part of a configuration. It holds no value of the user's.
type fault struct{ part, problem, remedy string }

// finding is a fault and the patch that caused it. A fault without a part is one of the patch as a whole.
type finding struct {
	fault
	by userPatch
}

func (f finding) violation() Violation {
	return Violation{Patch: f.by.path, Part: f.part, Problem: f.problem, Remedy: f.remedy}
}

// unusable is the finding that Talos refuses a patch.
func (p userPatch) unusable(err error) finding {
	why := describe(err, p.text)
	return finding{fault{"", why.problem, why.remedy}, p}
}

// repeats tells whether another machine has shown the same about the same patch, or about a patch with the same text. A part that one role
// has may be absent in the other.
func (f finding) repeats(other finding) bool {
	return f.by.id == other.by.id && (cluster.Within(f.part, other.part) || cluster.Within(other.part, f.part))
}

// checkOwned checks the patches of all machines, several machines at a time. It returns what is wrong in the order of the patches, and
// each thing once.
func (c model) checkOwned() []Violation {
	machines := c.Machines()
	byMachine := make([][]finding, len(machines))
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, machine := range machines {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			byMachine[i] = c.checkMachine(machine)
		})
	}
	group.Wait()
	var all []finding
	for _, found := range byMachine {
		earlier := all
		for _, one := range found {
			if !slices.ContainsFunc(earlier, one.repeats) {
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(a.by.scope, b.by.scope) })
	return xslices.Map(all, finding.violation)
}

// state is a node's configuration after a patch; by is unset in the one before all patches.
type state struct {
	full config.Provider
	tree map[string]any // taken at once: a later patch may change what full shares with the next state
	by   userPatch
}

func stateOf(full config.Provider, by userPatch) (state, error) {
	tree, err := guarded(func() (map[string]any, error) { return documents(full) })
	return state{full: full, tree: normalised(tree), by: by}, err
}

// checkMachine applies a machine's patches, and compares the result with the configuration without them.
func (c model) checkMachine(n cluster.Machine) []finding {
	patches := c.userPatches(n)
	if len(patches) == 0 {
		return nil
	}
	full, rendered, err := withoutUserPatches(c, n)
	if err != nil {
		return nil
	}
	base, err := stateOf(full, userPatch{})
	if err != nil {
		return nil
	}
	states, found := applied(base, patches)
	found = append(found, caused(states, samePart, func(s state) []fault {
		compared := comparison{cluster: c, node: n, rendered: rendered, base: base.tree, after: s.tree}
		return compared.differences()
	})...)
	now := time.Now()
	found = append(found, caused(states, sameFault, func(s state) []fault { return patchedCredentials(s.tree, now) })...)
	found = append(found, invalid(states, found)...)
	found = append(found, c.wrongIn(states, found)...)
	order := func(f finding) int { return slices.Index(patches, f.by) }
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(order(a), order(b)) })
	return found
}

// applied applies patches one after the other. It leaves out those that cannot be used.
func applied(base state, patches []userPatch) (states []state, unusable []finding) {
	states = []state{base}
	for _, user := range patches {
		var next state
		patch, err := loadPatch(user.text)
		if err == nil {
			next.full, err = applyPatch(states[len(states)-1].full, patch)
		}
		if err == nil {
			next, err = stateOf(next.full, user)
		}
		if err != nil {
			unusable = append(unusable, user.unusable(err))
			continue
		}
		states = append(states, next)
	}
	return states, unusable
}

// caused returns the faults of the last configuration that a patch has caused, each with the patch since which the configurations have the
// same fault.
func caused(states []state, same func(a, b fault) bool, of func(state) []fault) (found []finding) {
	for _, one := range of(states[len(states)-1]) {
		has := func(s state) bool {
			return slices.ContainsFunc(of(s), func(other fault) bool { return same(one, other) })
		}
		if by, is := cause(states, has); is {
			found = append(found, finding{one, by})
		}
	}
	return found
}

func sameFault(a, b fault) bool { return a == b }

// samePart takes two differences at one part for the same: a later patch may remove what an earlier one has changed.
func samePart(a, b fault) bool { return a.part == b.part }

// cause returns the patch since which `is` holds up to the last state; false if `is` holds without any patch.
func cause(states []state, is func(state) bool) (by userPatch, caused bool) {
	since := len(states) - 1
	for since > 0 && is(states[since-1]) {
		since--
	}
	return states[since].by, since > 0
}

// invalid returns what Talos's validation finds in the last configuration and not in the first, each for the patch that caused it. It
// leaves out patches that are refused already, which Talos refuses for the same reason.
func invalid(states []state, refused []finding) []finding {
	var found []finding
	for _, problem := range validated(states[len(states)-1].full) {
		user, caused := cause(states, func(s state) bool {
			return slices.ContainsFunc(validated(s.full), func(other error) bool { return other.Error() == problem.Error() })
		})
		if caused && !slices.ContainsFunc(refused, func(f finding) bool { return f.by.id == user.id && f.part != "" }) {
			found = append(found, user.unusable(problem))
		}
	}
	return found
}

// validated returns what Talos's own validation finds. Talos's warnings about accepted values are left out.
func validated(full config.Provider) []error {
	_, err := guarded(func() ([]string, error) { return full.Validate(metal{}) })
	if err == nil {
		return nil
	}
	return problems(err)
}

// checkSecrets refuses secrets in patches that are kept in plain text. It leaves out the parts that are refused already.
func (c model) checkSecrets(refused []Violation) []Violation {
	var violations []Violation
	said := map[string]bool{}
	for _, machine := range c.Machines() {
		for _, patch := range c.userPatches(machine) {
			if patch.secret || said[patch.id] {
				continue
			}
			said[patch.id] = true
			parts, _ := secretsIn(patch.text) // checkOwned reports a patch that cannot be read
			for _, part := range parts {
				if !slices.ContainsFunc(refused, func(v Violation) bool {
					return v.Patch == patch.path && v.Part != "" && cluster.Within(part, v.Part)
				}) {
					violations = append(violations, Violation{
						Patch: patch.path, Part: part, Problem: "may be a secret, and the patch is kept in plain text",
						Remedy: "move the patch to the secret slipway:" + cluster.SecretPatchesKey,
					})
				}
			}
		}
	}
	return violations
}

// describe says in plain words, and without any value of the patch, why a patch cannot be used.
func describe(err error, patch string) *refusal {
	var known *refusal
	if errors.As(err, &known) {
		return known
	}
	return &refusal{withoutValues(err, patch), referenceRemedy}
}
