package handover

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/internal/health"
)

var rootDeclared = check{
	Name: "the root Application is as declared",
	Looks: "it exists and is not being deleted, its AppProject exists, it has the declared repository, revision and path, " +
		"and its automated sync is on",
	ByHand: "kubectl -n argocd get application root -o yaml; kubectl -n argocd get appprojects",
	Judge: func(spec *Spec, seen *Cluster) []health.Result {
		subject := kind + " " + spec.Namespace + "/" + spec.Root
		if result, missing := seen.Applications.Unread(subject, "it"); missing {
			return []health.Result{result}
		}
		root, found := seen.root(spec)
		if !found {
			result := health.Fail(subject, "does not exist")
			result.Command = fmt.Sprintf("kubectl -n %s get applications,pods", spec.Namespace)
			return []health.Result{result}
		}
		if result, missing := seen.Projects.Unread(subject, "the AppProjects"); missing {
			return []health.Result{result}
		}
		problems := undeclared(spec, root)
		if project := cmp.Or(root.Project, cluster.ArgoCDProject); !slices.Contains(seen.Projects.Items, project) {
			problems = append(problems, "its AppProject "+project+" does not exist")
		}
		if len(problems) > 0 {
			return []health.Result{root.fail(strings.Join(problems, "; "))}
		}
		return []health.Result{health.Pass(subject)}
	},
}

// undeclared returns what of the root itself is not as declared.
func undeclared(spec *Spec, root Application) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if root.Deleting {
		add("is being deleted")
	}
	if len(root.Sources) != 1 {
		add("has %d sources instead of one", len(root.Sources))
	} else {
		source := root.Sources[0]
		if spec.URL != "" && source.URL != spec.URL {
			add("follows %s instead of %s", cmp.Or(source.URL, "no repository"), spec.URL)
		}
		if spec.Ref != "" && fullRef(source.Ref) != fullRef(spec.Ref) {
			add("follows %s instead of %s", cmp.Or(source.Ref, "HEAD"), spec.Ref)
		}
		if spec.Path != "" && cleanPath(source.Path) != cleanPath(spec.Path) {
			add("applies %s instead of %s", cmp.Or(source.Path, "no path"), spec.Path)
		}
	}
	if !root.Automated {
		add("its automated sync is off")
	}
	return problems
}

func cleanPath(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }
