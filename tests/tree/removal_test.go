package tree

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/cluster"
)

// Helm deletes the Deployment of an operator before the objects of its kinds. Their finalizers would then stay, because only the operator
// removes them. So a Job deletes these objects while the operator runs, and no other object, because some hold data that stays.
func TestRemoval_ObjectsOfVictoriaMetricsGoBeforeTheirOperator(t *testing.T) {
	const group = "operator.victoriametrics.com"
	withFinalizers := []string{"VLAgent", "VLSingle", "VMAgent", "VMAlert", "VMAlertmanager", "VMSingle"}
	for name, layers := range clusters(t) {
		release := named(t, layers, "HelmRelease", "stack")
		objects, _, err := Render(release)
		require.NoError(t, err)
		rendered := []Layer{{Objects: objects}}

		var deleted, resources []string
		all := tree{layers: append(slices.Clone(layers), rendered...)}
		all.each(func(_ Layer, object Object) {
			kind := object.GetKind()
			if object.GroupVersionKind().Group == group && slices.Contains(withFinalizers, kind) && !stays(object) {
				deleted = append(deleted, strings.ToLower(kind)+"/"+object.GetName())
				resources = append(resources, strings.ToLower(kind)+"s")
			}
		})
		require.Len(t, deleted, 5, name)

		var job batchv1.Job
		decode(t, named(t, rendered, "Job", "operator-cleanup"), &job)
		container := job.Spec.Template.Spec.Containers[0]
		assert.ElementsMatch(t, append([]string{"delete", "--ignore-not-found"}, deleted...), container.Args, name)
		assert.True(t, pinned(container.Image), container.Image)
		for _, check := range []func(*tree){images, workloads} {
			one := tree{layers: append(slices.Clone(layers), Layer{Folder: "Job", Objects: []Object{named(t, rendered, "Job", "operator-cleanup")}})}
			check(&one)
			assert.Empty(t, one.problems, name)
		}

		var role rbacv1.Role
		decode(t, named(t, rendered, "Role", "operator-cleanup"), &role)
		require.Len(t, role.Rules, 1)
		assert.Equal(t, []string{group}, role.Rules[0].APIGroups)
		assert.ElementsMatch(t, resources, role.Rules[0].Resources)
		var binding rbacv1.RoleBinding
		decode(t, named(t, rendered, "RoleBinding", "operator-cleanup"), &binding)
		assert.Equal(t, rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "operator-cleanup"}, binding.RoleRef)
		account := job.Spec.Template.Spec.ServiceAccountName
		assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: release.GetNamespace()}}, binding.Subjects)

		weights := map[string]string{}
		for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding", "Job"} {
			hook := named(t, rendered, kind, "operator-cleanup")
			assert.Equal(t, "pre-delete", hook.GetAnnotations()["helm.sh/hook"], kind)
			assert.Equal(t, release.GetNamespace(), hook.GetNamespace(), kind)
			weights[kind] = hook.GetAnnotations()["helm.sh/hook-weight"]
		}
		assert.Equal(t, map[string]string{"ServiceAccount": "", "Role": "", "RoleBinding": "", "Job": "1"}, weights)
	}
}

// By default, `up` waits that long until Flux has removed everything. A release that gives up earlier says what its removal waits for.
func TestRemoval_AReleaseGivesUpBeforeUpDoes(t *testing.T) {
	timeout, _ := reflect.TypeFor[cluster.GitOps]().FieldByName("Timeout")
	longest, err := time.ParseDuration(timeout.Tag.Get("default"))
	require.NoError(t, err)
	seen := 0
	for name, layers := range clusters(t) {
		all := tree{layers: layers}
		all.each(func(_ Layer, object Object) {
			if !object.Is(helmGroup, "HelmRelease") {
				return
			}
			seen++
			own, err := time.ParseDuration(cmp.Or(object.Text("spec", "uninstall", "timeout"), object.Text("spec", "timeout")))
			require.NoError(t, err)
			assert.Less(t, own, longest, "%s: %s", name, object.Title())
		})
	}
	assert.Positive(t, seen)
}

func decode(t *testing.T, object Object, into any) {
	t.Helper()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into), object.Title())
}
