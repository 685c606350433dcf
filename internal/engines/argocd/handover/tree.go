package handover

import (
	"strings"

	"github.com/slipway-platform/slipway/internal/health"
)

// The tree is everything that the root applies, what these Applications apply, and so on.
var treeHealthy = check{
	Name: "everything Argo CD applies from the root is Synced and Healthy",
	Looks: "all Applications that the root applies, directly or through another Application or an ApplicationSet: comparison, " +
		"conditions, sync, health and, of the root's repository, the revision",
	ByHand: "kubectl get applications -A -o wide",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		_, found := seen.root(spec)
		switch {
		case !found && seen.Applications.Err != nil:
			return []health.Result{health.Block("", "the root Application cannot be read")}
		case !found && !seen.Applications.Synced:
			return []health.Result{health.NotSeen("", "the Applications")}
		case !found:
			return []health.Result{health.Block("", "there is no root Application")}
		}
		if result, missing := seen.Applications.Unread("", "the Applications"); missing {
			return []health.Result{result}
		}
		tree := seen.judgeTree(spec)
		var results []health.Result
		for _, one := range tree.members[1:] {
			results = append(results, one.result)
		}
		for _, absent := range tree.absent {
			results = append(results, tree.resultOfAbsent(absent)...)
		}
		if len(results) == 0 {
			result := health.Pass("")
			result.Reason = "the root applies no other Applications"
			return []health.Result{result}
		}
		return results
	},
}

// tree is the root and what descends from it.
type tree struct {
	members []judged // the root first, and each before what it applies
	absent  []absent
}

// absent is an Application that does not exist.
type absent struct {
	Object
	parent int
}

// tree returns the tree, whose members are not judged yet. An Application that several others apply belongs to the first that is found.
func (seen *Cluster) tree(spec *Spec) tree {
	var all tree
	visited := map[string]bool{}
	add := func(app Application, parent int) {
		visited[app.Key()] = true
		all.members = append(all.members, judged{Application: app, parent: parent})
	}
	if root, found := seen.root(spec); found {
		add(root, -1)
	}
	for i := 0; i < len(all.members); i++ {
		parent := all.members[i]
		if !parent.InCluster {
			continue // what it applies is in another cluster
		}
		for _, resource := range parent.Resources {
			if !resource.isApplication() || resource.Hook || visited[resource.key()] {
				continue
			}
			if app, exists := seen.application(resource.key()); exists {
				add(app, i)
			} else if !resource.Prune {
				visited[resource.key()] = true
				all.absent = append(all.absent, absent{resource.Object, i})
			}
		}
		for _, app := range seen.Applications.Items {
			if !visited[app.Key()] && (tracked(spec, app) == parent.Key() || parent.made(app)) {
				add(app, i)
			}
		}
	}
	return all
}

// tracked returns the key of the Application that applies another, as its tracking id has it; "" without one.
func tracked(spec *Spec, app Application) string {
	namespace, name, qualified := strings.Cut(app.Tracker, "_")
	switch {
	case app.Tracker == "":
		return ""
	case !qualified:
		return spec.Namespace + "/" + app.Tracker
	}
	return namespace + "/" + name
}

// made reports whether an ApplicationSet that the Application applies has made another Application.
func (a Application) made(app Application) bool {
	for _, resource := range a.Resources {
		if resource.Group == group && resource.Kind == "ApplicationSet" && resource.key() == app.Set {
			return true
		}
	}
	return false
}

// judgeTree judges the root and what descends from it. One that only waits for another Application of the tree is blocked.
func (seen *Cluster) judgeTree(spec *Spec) tree {
	all := seen.tree(spec)
	for i := range all.members {
		seen.judge(spec, &all.members[i])
	}
	seen.block(&all)
	return all
}

// resultOfAbsent returns the result for an Application that does not exist; none while its parent applies a newer revision.
func (t tree) resultOfAbsent(one absent) []health.Result {
	title := kind + " " + one.key()
	parent := t.members[one.parent]
	switch {
	case parent.byHand():
		return []health.Result{health.Skip(title, parent.title()+" has not applied it, and is synced by hand")}
	case parent.result.Verdict != health.Passed:
		return []health.Result{health.Block(title, parent.title()+" has not applied it yet")}
	case !parent.settled:
		return nil
	}
	return []health.Result{parent.about(title, "is among the resources of "+parent.title()+", and does not exist")}
}

// about is a failed result for an object of the Application.
func (a Application) about(subject, reason string) health.Result {
	result := a.fail(reason)
	result.Subject = subject
	return result
}
