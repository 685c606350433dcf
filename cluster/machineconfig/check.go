package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"

	"github.com/slipway-platform/slipway/cluster"
)

// Violation is one thing that is wrong with one patch of the user's, or with one flag of talos.kubelet.extraArgs. It holds no value of
// the patch, only keys and the names of documents.
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

// CheckPatches returns everything that is wrong with the user's patches, each once: that Talos cannot use a patch, that a patch
// sets what Slipway owns, and that a patch in plain text holds what may be a secret. The patches are in the order of application.
// Before them are the flags of talos.kubelet.extraArgs that no patch may set. What else is wrong without any patch is for Validate to
// say.
func CheckPatches(declared *cluster.Cluster) []Violation {
	return checked(modelOf(declared), func(r *report, c model, t target) {
		r.checkOwned(c, t)
		r.checkSecrets(t.patches)
	})
}

// checked runs a check for all targets, several at a time. It returns what is wrong with kubelet's flags, then what the targets find, in
// their order.
func checked(c model, check func(*report, model, target)) []Violation {
	all := targets(c)
	reports := make([]report, len(all))
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, t := range all {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			check(&reports[i], c, t)
		})
	}
	group.Wait()
	violations := c.checkKubeletFlags()
	for _, r := range reports {
		earlier := violations
		for _, violation := range r.violations {
			if !slices.ContainsFunc(earlier, violation.repeats) {
				violations = append(violations, violation)
			}
		}
	}
	return violations
}

// repeats tells whether another violation, found with another role, is about the same part of the same patch, or about one above or
// below it: what a patch may not set, it changes for one role and adds for the other.
func (v Violation) repeats(other Violation) bool {
	within := func(part, above string) bool {
		return above == "" || part == above || strings.HasPrefix(part, above+".")
	}
	return v.Patch == other.Patch && (within(v.Part, other.Part) || within(other.Part, v.Part))
}

// checkKubeletFlags refuses in talos.kubelet.extraArgs the flags that no patch may set.
func (c model) checkKubeletFlags() []Violation {
	var violations []Violation
	for _, flag := range slices.Sorted(maps.Keys(c.Talos.Kubelet.ExtraArgs)) {
		if refused := checkKubeletSetting(flag); refused.problem != "" {
			path := cluster.EntryPath("talos.kubelet.extraArgs", flag)
			violations = append(violations, Violation{Patch: path, Problem: refused.problem, Remedy: refused.remedy})
		}
	}
	return violations
}

// report collects the violations of one target.
type report struct{ violations []Violation }

func (r *report) add(patch userPatch, part, problem, remedy string) {
	r.violations = append(r.violations, Violation{Patch: patch.path, Part: part, Problem: problem, Remedy: remedy})
}

// reported tells whether a patch sets something that it may not.
func (r *report) reported(patch userPatch) bool {
	return slices.ContainsFunc(r.violations, func(v Violation) bool {
		return v.Patch == patch.path && v.Part != ""
	})
}

// checkSecrets refuses secrets in patches that are kept in plain text. It leaves out the parts that no patch may set.
func (r *report) checkSecrets(patches []userPatch) {
	owned := r.violations
	for _, patch := range patches {
		if patch.secret {
			continue
		}
		parts, err := secretsIn(patch.text)
		if err != nil {
			continue // checkOwned reports that the patch cannot be read
		}
		for _, part := range parts {
			refused := slices.ContainsFunc(owned, func(v Violation) bool {
				below, within := strings.CutPrefix(part, v.Part)
				return v.Patch == patch.path && v.Part != "" && within && (below == "" || strings.ContainsAny(below[:1], ".["))
			})
			if !refused {
				r.add(patch, part, "may be a secret, and the patch is kept in plain text",
					"move the patch to the secret slipway:"+cluster.SecretPatchesKey)
			}
		}
	}
}

// checkOwned applies the patches of a target one after the other and compares after each.
func (r *report) checkOwned(c model, t target) {
	if len(t.patches) == 0 {
		return
	}
	full, own, err := withoutUserPatches(c, t.node)
	if err != nil {
		return
	}
	compared, err := newComparison(c, t.node, full, own)
	if err != nil {
		return
	}
	before := compared.base
	if len(t.earlier) > 0 {
		for _, patch := range t.earlier {
			if next, err := applyPatch(full, copied(patch)); err == nil {
				full = next
			}
		}
		if before, err = guarded(func() (map[string]any, error) { return documents(full) }); err != nil {
			return
		}
		before = normalised(before)
	}
	states := []state{{full: full}}
	for _, user := range t.patches {
		next, after, err := patched(full, user)
		if err != nil {
			r.add(user, "", describe(err, user.text).Error(), remedyForPatch(err))
			continue
		}
		for _, one := range compared.compare(before, after) {
			r.add(user, one.part, one.problem, one.remedy)
		}
		full, before = next, after
		states = append(states, state{full: full, by: user})
	}
	r.checkValid(states)
}

// state is the configuration after a patch; by is unset in the one before all patches of a target.
type state struct {
	full config.Provider
	by   userPatch
}

// checkValid reports what Talos's validation finds in the last configuration and not in the first. Each problem is reported for the
// patch that caused it.
func (r *report) checkValid(states []state) {
	last := states[len(states)-1]
	found := validated(last.full)
	if len(states) == 1 || len(found) == 0 {
		return
	}
	all := make([]map[string]bool, len(states))
	for i := range states {
		all[i] = map[string]bool{}
		for _, problem := range validated(states[i].full) {
			all[i][problem.Error()] = true
		}
	}
	for _, problem := range found {
		since := len(states) - 1
		for since > 0 && all[since-1][problem.Error()] {
			since--
		}
		// A patch that sets what Slipway owns is reported for that: Talos refuses it for the same reason.
		if user := states[since].by; since > 0 && !r.reported(user) {
			r.add(user, "", describe(problem, user.text).Error(), remedyForPatch(problem))
		}
	}
}

// validated returns what Talos's own validation finds. Its warnings are advice on what it accepts, and left out.
func validated(full config.Provider) []error {
	_, err := guarded(func() ([]string, error) { return full.Validate(metal{}) })
	if err == nil {
		return nil
	}
	return problems(err)
}

// newComparison prepares the comparison with a node's configuration without the user's patches. own is what Slipway renders of it.
func newComparison(c model, n cluster.Machine, full config.Provider, own string) (*comparison, error) {
	base, err := documents(full)
	if err != nil {
		return nil, err
	}
	rendered, err := documentsIn(own)
	if err != nil {
		return nil, err
	}
	return &comparison{cluster: c, node: n, rendered: normalised(rendered), base: normalised(base)}, nil
}

// patched applies one of the user's patches, and takes the result apart.
func patched(full config.Provider, user userPatch) (config.Provider, map[string]any, error) {
	patch, err := loadPatch(user.text)
	if err != nil {
		return nil, nil, err
	}
	next, err := applyPatch(full, patch)
	if err != nil {
		return nil, nil, err
	}
	after, err := guarded(func() (map[string]any, error) { return documents(next) })
	if err != nil {
		return nil, nil, err
	}
	return next, normalised(after), nil
}

// describe says in plain words, and without any value of the patch, why a patch cannot be used.
func describe(err error, patch string) error {
	for _, known := range []error{
		errEmptyPatch, errLargePatch, errNotYAML, errNotMapping, errJSONPatch, errUnknownKind, errAbsentDocument, errAbsentPart, errPanic,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errors.New(withoutValues(err, patch))
}

// remedyForPatch says what to do about a patch that cannot be used.
func remedyForPatch(err error) string {
	switch {
	case errors.Is(err, errEmptyPatch), errors.Is(err, errAbsentDocument), errors.Is(err, errAbsentPart):
		return removeIt
	case errors.Is(err, errLargePatch):
		return "write only the part of the machine configuration that the patch sets"
	case errors.Is(err, errNotYAML), errors.Is(err, errNotMapping), errors.Is(err, errJSONPatch):
		return "write the part of the machine configuration that the patch sets, as a strategic merge patch"
	}
	return "see Talos's configuration reference"
}

// target is what is checked at once: patches, and the node that they are checked with.
type target struct {
	node    cluster.Machine
	earlier []configpatcher.StrategicMergePatch // patches that are applied before, and checked by another target
	patches []userPatch
}

// targets are the patches that all nodes of a role share, once for each role, and the patches of the nodes' own, once for all nodes of
// a role that have the same.
func targets(c model) []target {
	nodes := c.Machines()
	var shared, own []target
	loaded := map[cluster.Role][]configpatcher.StrategicMergePatch{}
	earlier := func(role cluster.Role) []configpatcher.StrategicMergePatch {
		if _, done := loaded[role]; !done {
			loaded[role] = usable(c.sharedPatches(role))
		}
		return loaded[role]
	}
	roles, lists := map[cluster.Role][]cluster.Machine{}, map[string][]cluster.Machine{}
	for _, n := range nodes {
		roles[n.Role] = append(roles[n.Role], n)
		if len(n.Patches) > 0 {
			key := fmt.Sprintf("%s %q", n.Role, n.Patches)
			lists[key] = append(lists[key], n)
		}
	}
	for _, n := range nodes {
		if same := roles[n.Role]; same != nil {
			shared = append(shared, target{node: combined(same), patches: c.sharedPatches(n.Role)})
			delete(roles, n.Role)
		}
		key := fmt.Sprintf("%s %q", n.Role, n.Patches)
		if same := lists[key]; same != nil {
			own = append(own, target{node: combined(same), earlier: earlier(n.Role), patches: ownPatches(n)})
			delete(lists, key)
		}
	}
	return append(shared, own...)
}

// usable reads the patches that can be read.
func usable(patches []userPatch) []configpatcher.StrategicMergePatch {
	var loaded []configpatcher.StrategicMergePatch
	for _, user := range patches {
		if patch, err := loadPatch(user.text); err == nil {
			loaded = append(loaded, patch)
		}
	}
	return loaded
}

// copied returns a copy of a patch. Applied patches share memory with the configuration, and several targets run at a time.
func copied(patch configpatcher.StrategicMergePatch) configpatcher.StrategicMergePatch {
	return configpatcher.NewStrategicMergePatch(patch.Provider().Clone())
}

// combined returns a node with the labels, taints and disks of all nodes, so that a patch which sets what one of them has is found.
// Its name is that of no node: a patch that sets one node's name changes the name of the others.
func combined(nodes []cluster.Machine) cluster.Machine {
	one := nodes[0]
	if len(nodes) == 1 {
		return one
	}
	one.Name = "slipway-several"
	labels, taints := map[string]string{}, map[string]string{}
	volumes, disks := map[string]bool{}, 0
	for _, n := range nodes {
		merge(labels, n.Labels, "several")
		merge(taints, n.Taints, "several:NoSchedule")
		disks = max(disks, len(n.DataDisks))
		for _, disk := range n.DataDisks {
			if disk.Use == cluster.DiskVolume {
				volumes[disk.Name] = true
			}
		}
	}
	one.Labels, one.Taints, one.DataDisks = labels, taints, nil
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		one.DataDisks = append(one.DataDisks, cluster.DataDisk{Name: name, Use: cluster.DiskVolume})
	}
	for len(one.DataDisks) < disks {
		one.DataDisks = append(one.DataDisks, cluster.DataDisk{Name: fmt.Sprintf("raw-%d", len(one.DataDisks)), Use: cluster.DiskRaw})
	}
	return one
}

// merge adds further to all. A key with different values gets the value different.
func merge(all, further map[string]string, different string) {
	for key, value := range further {
		if other, taken := all[key]; taken && other != value {
			value = different
		}
		all[key] = value
	}
}
