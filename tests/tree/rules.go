package tree

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// rule is something that holds for a tree. It reports each place where it does not.
type rule struct {
	name  string
	check func(t *tree)
}

// rules are the rules of the tree, beside the schemas of its objects.
var rules = []rule{
	{"Flux retries, waits, ends and removes", fluxSettings},
	{"charts and sources have exact versions", versions},
	{"images are pinned", images},
	{"charts bring no CRDs", noCRDs},
	{"references lead somewhere", references},
	{"layers wait for what they need", order},
	{"namespaces have a level of pod security, and network policies", namespaces},
	{"policies say which clusters of a mesh they mean", clustersOfPolicies},
	{"what holds data is not removed with its manifest", data},
	{"a namespace stays until its releases are uninstalled", records},
	{"expressions of rules and dashboards can be parsed, and name metrics that Cilium and Flux have", expressions},
	{"workloads have requests, a budget, and pods that their namespace admits", workloads},
	{"pods that see the mounts of the kubelet let them go", mounts},
}

// tree is what Flux applies to one cluster.
type tree struct {
	layers   []Layer
	problems []string
}

func (t *tree) found(layer Layer, object Object, format string, args ...any) {
	t.problems = append(t.problems, layer.Folder+": "+object.Title()+": "+fmt.Sprintf(format, args...))
}

// each calls a function with each object of the tree.
func (t *tree) each(call func(layer Layer, object Object)) {
	for _, layer := range t.layers {
		for _, object := range layer.Objects {
			call(layer, object)
		}
	}
}

// find returns the layer with the object.
func (t *tree) find(group, kind, namespace, name string) (Layer, Object, bool) {
	for _, layer := range t.layers {
		for _, object := range layer.Objects {
			if object.Is(group, kind) && object.GetNamespace() == namespace && object.GetName() == name {
				return layer, object, true
			}
		}
	}
	return Layer{}, Object{}, false
}

// fluxSettings: a Kustomization or HelmRelease has no field without which Flux waits for nothing, retries late, or removes nothing.
func fluxSettings(t *tree) {
	t.each(func(layer Layer, object Object) {
		required := [][]string{}
		switch {
		case object.Is(kustomizeGroup, "Kustomization"):
			required = [][]string{{"interval"}, {"retryInterval"}, {"timeout"}, {"prune"}}
			if wait, _, _ := unstructured.NestedBool(object.Object, "spec", "wait"); !wait && len(object.List("spec", "healthChecks")) == 0 {
				t.found(layer, object, "neither waits nor has health checks; write spec.wait: true")
			}
			if object.GetNamespace() != fluxNamespace {
				t.found(layer, object, "is not in namespace %s, where the settings and the source are", fluxNamespace)
			}
		case object.Is(helmGroup, "HelmRelease"):
			required = [][]string{{"interval"}, {"timeout"}, {"releaseName"}}
			for _, action := range []string{"install", "upgrade"} {
				strategy := object.Text("spec", action, "strategy", "name")
				retries, _, _ := unstructured.NestedInt64(object.Object, "spec", action, "remediation", "retries")
				if strategy != "RetryOnFailure" && retries == 0 {
					t.found(layer, object, "does not retry; write spec.%s.strategy.name: RetryOnFailure", action)
				}
			}
			if object.Text("spec", "driftDetection", "mode") == "" {
				t.found(layer, object, "does not correct changes by hand; write spec.driftDetection.mode: enabled")
			}
		case object.GroupVersionKind().Group == sourceGroup:
			required = [][]string{{"interval"}}
		}
		for _, field := range required {
			if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, append([]string{"spec"}, field...)...); !found {
				t.found(layer, object, "has no spec.%s", strings.Join(field, "."))
			}
		}
	})
}

// exactVersion is a version that names one release, as charts and tags of charts do.
var exactVersion = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// versions: a chart, an artifact or another repository has a version that always means the same.
func versions(t *tree) {
	t.each(func(layer Layer, object Object) {
		switch {
		case object.Is(helmGroup, "HelmRelease") && object.Text("spec", "chartRef", "name") == "":
			if version := object.Text("spec", "chart", "spec", "version"); !exactVersion.MatchString(version) {
				t.found(layer, object, "spec.chart.spec.version: %q is not one version; write it in full, such as 1.2.3", version)
			}
		case object.Is(sourceGroup, "OCIRepository"):
			if tag := object.Text("spec", "ref", "tag"); !exactVersion.MatchString(tag) && object.Text("spec", "ref", "digest") == "" {
				t.found(layer, object, "spec.ref.tag: %q is not one version; write it in full, such as 1.2.3", tag)
			}
		case object.Is(sourceGroup, "GitRepository"):
			if tag := object.Text("spec", "ref", "tag"); !exactVersion.MatchString(tag) && object.Text("spec", "ref", "commit") == "" {
				t.found(layer, object, "spec.ref: is not a tag of one version, nor a commit")
			}
		}
	})
}

// images: each image in the tree, in pods, in custom resources and in values of charts, has a tag of one release or a digest.
func images(t *tree) {
	t.each(func(layer Layer, object Object) {
		walk(object.Object, nil, func(at []string, key string, value any) {
			text, isText := value.(string)
			place := strings.Join(append(slices.Clone(at), key), ".")
			switch {
			case !isText || text == "":
			case key == "tag" && floating(text):
				t.found(layer, object, "%s: %q is no version", place, text)
			case (key == "image" || key == "imageName") && !pinned(text):
				t.found(layer, object, "%s: %q has no tag of one release, nor a digest", place, text)
			}
		})
	})
}

// pinned reports whether an image has a digest, a tag that starts with a number, or the version of the cluster as its tag, which Helm
// writes.
func pinned(image string) bool {
	if strings.Contains(image, "@sha256:") || strings.HasSuffix(image, ":{{ .Capabilities.KubeVersion.Version }}") {
		return true
	}
	_, tag, found := strings.Cut(path.Base(image), ":")
	return found && !floating(tag)
}

// number is a tag that starts with a version of at least two numbers.
var number = regexp.MustCompile(`^v?\d+\.\d+`)

func floating(tag string) bool { return !number.MatchString(tag) }

// walk calls a function with each field of an object.
func walk(value any, at []string, call func(at []string, key string, value any)) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			call(at, key, below)
			walk(below, append(slices.Clone(at), key), call)
		}
	case []any:
		for i, below := range value {
			walk(below, append(slices.Clone(at), fmt.Sprint(i)), call)
		}
	}
}

// noCRDs: CRDs are installed before any chart, by Pulumi, and a chart that brought its own would replace and remove them.
func noCRDs(t *tree) {
	t.each(func(layer Layer, object Object) {
		switch {
		case object.GetKind() == "CustomResourceDefinition":
			t.found(layer, object, "CRDs are installed by Pulumi: see crds in the stack file")
		case object.Is(helmGroup, "HelmRelease"):
			for _, action := range []string{"install", "upgrade"} {
				if object.Text("spec", action, "crds") != "Skip" {
					t.found(layer, object, "write spec.%s.crds: Skip", action)
				}
			}
		}
	})
}

// namespaces: each namespace says which pods it admits, and has a policy for their traffic.
func namespaces(t *tree) {
	t.each(func(layer Layer, object Object) {
		if !object.Is("", "Namespace") {
			return
		}
		level := object.GetLabels()[api.EnforceLevelLabel]
		if _, err := api.ParseLevel(level); err != nil {
			t.found(layer, object, "label %s: is %q; write restricted, baseline or privileged", api.EnforceLevelLabel, level)
		}
		protected := false
		t.each(func(_ Layer, other Object) {
			protected = protected || protects(other) && other.GetNamespace() == object.GetName()
		})
		if !protected {
			t.found(layer, object, "has no network policy for all of its pods; add the component components/namespace to its kustomization")
		}
	})
}

// protects reports whether an object is a policy that denies, to all pods of its namespace, connections that no policy allows.
func protects(object Object) bool {
	var selector string
	switch {
	case object.Is("networking.k8s.io", "NetworkPolicy"):
		types, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "policyTypes")
		if len(types) > 0 && !slices.Contains(types, "Ingress") {
			return false
		}
		selector = "podSelector"
	case object.Is("cilium.io", "CiliumNetworkPolicy"):
		restricts, said, _ := unstructured.NestedBool(object.Object, "spec", "enableDefaultDeny", "ingress")
		if said && !restricts || !said && len(object.List("spec", "ingress")) == 0 {
			return false
		}
		selector = "endpointSelector"
	default:
		return false
	}
	selected, found, _ := unstructured.NestedMap(object.Object, "spec", selector)
	return found && len(selected) == 0
}

// clusterLabel is the label of pods that Cilium's policies know clusters by.
const clusterLabel = "io.cilium.k8s.policy.cluster"

// clustersOfPolicies: a selector of peers says which cluster they are in. Without, a setting of Cilium decides whether it matches the pods
// of all clusters of the mesh: clustermesh.policyDefaultLocalCluster, whose default is another one from Cilium 1.19 on.
func clustersOfPolicies(t *tree) {
	t.each(func(layer Layer, object Object) {
		if object.GroupVersionKind().Group != "cilium.io" {
			return
		}
		walk(object.Object, nil, func(_ []string, key string, value any) {
			if key != "fromEndpoints" && key != "toEndpoints" {
				return
			}
			for _, selector := range list(map[string]any{key: value}, key) {
				if !namesCluster(selector) {
					t.found(layer, object, "%s: does not say which cluster; add the label k8s:%s", key, clusterLabel)
				}
			}
		})
	})
}

func namesCluster(selector map[string]any) bool {
	named := slices.ContainsFunc(list(selector, "matchExpressions"), func(expression map[string]any) bool {
		return expression["key"] == "k8s:"+clusterLabel
	})
	exact, _, _ := unstructured.NestedString(selector, "matchLabels", "k8s:"+clusterLabel)
	return named || exact != ""
}

// holdsData are kinds whose deletion deletes data, or the access of other clusters to their data.
var holdsData = []struct{ group, kind string }{
	{"", "PersistentVolumeClaim"}, {"postgresql.cnpg.io", "Cluster"}, {"ceph.rook.io", "CephCluster"}, {"ceph.rook.io", "CephBlockPool"},
	{"ceph.rook.io", "CephFilesystem"}, {"ceph.rook.io", "CephBlockPoolRadosNamespace"}, {"ceph.rook.io", "CephClient"},
	{"operator.victoriametrics.com", "VMSingle"}, {"operator.victoriametrics.com", "VLSingle"},
}

// data: an object that holds data, and its namespace, stay in the cluster when their manifest is removed.
func data(t *tree) {
	t.each(func(layer Layer, object Object) {
		for _, of := range holdsData {
			if !object.Is(of.group, of.kind) || t.ofOneConsumer(object) {
				continue
			}
			t.keeps(layer, object)
			if in, namespace, found := t.find("", "Namespace", "", object.GetNamespace()); found {
				t.keeps(in, namespace)
			}
		}
	})
}

// ofOneConsumer reports whether a user of Ceph is that of one consumer alone, which has the name of its RADOS namespace. Who removes the
// manifest shuts this consumer out.
func (t *tree) ofOneConsumer(object Object) (found bool) {
	t.each(func(_ Layer, one Object) {
		found = found || one.GetKind() == "CephBlockPoolRadosNamespace" && strings.HasPrefix(object.GetName(), one.GetName()+"-")
	})
	return found && object.GetKind() == "CephClient"
}

func (t *tree) keeps(layer Layer, object Object) {
	if !stays(object) {
		t.found(layer, object, "is removed with its data when its manifest is; annotate it with %s: disabled", pruneKey)
	}
}

const pruneKey = kustomizeGroup + "/prune"

// stays reports whether Flux leaves an object whose manifest is removed.
func stays(object Object) bool { return object.GetAnnotations()[pruneKey] == "disabled" }

// records: the namespace with Helm's record of a release stays. Flux deletes the HelmRelease and the namespace at once, and without the
// record, helm-controller leaves what the release has outside of the namespace, such as an APIService without a backend.
func records(t *tree) {
	t.each(func(_ Layer, object Object) {
		if !object.Is(helmGroup, "HelmRelease") {
			return
		}
		in, namespace, found := t.find("", "Namespace", "", cmp.Or(object.Text("spec", "storageNamespace"), object.GetNamespace()))
		if found && !stays(namespace) {
			t.found(in, namespace, "is removed together with the record of HelmRelease %s; annotate it with %s: disabled",
				object.GetName(), pruneKey)
		}
	})
}

// workload is what a Deployment and its like have in common.
type workload struct {
	replicas int64
	selector map[string]string
	pod      corev1.PodTemplateSpec
}

// read reads a Deployment, StatefulSet, DaemonSet, Job or CronJob; found is false for other kinds.
func read(object Object) (w workload, found bool) {
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	replicas := func(declared *int32) int64 {
		if declared == nil {
			return 1
		}
		return int64(*declared)
	}
	switch object.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps":
		var d appsv1.Deployment
		found = convert(object.Object, &d) == nil
		w = workload{replicas(d.Spec.Replicas), d.Spec.Template.Labels, d.Spec.Template}
	case "StatefulSet.apps":
		var s appsv1.StatefulSet
		found = convert(object.Object, &s) == nil
		w = workload{replicas(s.Spec.Replicas), s.Spec.Template.Labels, s.Spec.Template}
	case "DaemonSet.apps":
		var d appsv1.DaemonSet
		found = convert(object.Object, &d) == nil
		w = workload{pod: d.Spec.Template}
	case "Job.batch":
		var j batchv1.Job
		found = convert(object.Object, &j) == nil
		w = workload{pod: j.Spec.Template}
	case "CronJob.batch":
		var c batchv1.CronJob
		found = convert(object.Object, &c) == nil
		w = workload{pod: c.Spec.JobTemplate.Spec.Template}
	}
	return w, found
}

// workloads: the scheduler knows what a pod needs, a drain leaves one pod running, and the namespace admits the pods.
func workloads(t *tree) {
	t.each(func(layer Layer, object Object) {
		w, found := read(object)
		if !found {
			return
		}
		for _, container := range slices.Concat(w.pod.Spec.InitContainers, w.pod.Spec.Containers) {
			for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				if _, declared := container.Resources.Requests[resource]; !declared {
					t.found(layer, object, "container %s requests no %s", container.Name, resource)
				}
			}
			if _, declared := container.Resources.Limits[corev1.ResourceMemory]; !declared {
				t.found(layer, object, "container %s has no limit of memory", container.Name)
			}
		}
		if w.replicas > 1 && !t.hasBudget(object.GetNamespace(), w.selector) {
			t.found(layer, object, "has %d replicas and no PodDisruptionBudget", w.replicas)
		}
		if level, found := t.level(object.GetNamespace()); found {
			for _, reason := range refused(level, w.pod) {
				t.found(layer, object, "its namespace admits no such pod (%s): %s", level, reason)
			}
		}
	})
}

func (t *tree) hasBudget(namespace string, pod map[string]string) (found bool) {
	t.each(func(_ Layer, object Object) {
		if !object.Is("policy", "PodDisruptionBudget") || object.GetNamespace() != namespace {
			return
		}
		selector, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
		found = found || err == nil && len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(pod))
	})
	return found
}

// level returns the level of pod security of a namespace of the tree.
func (t *tree) level(namespace string) (api.Level, bool) {
	_, object, found := t.find("", "Namespace", "", namespace)
	if !found {
		return "", false
	}
	level, err := api.ParseLevel(object.GetLabels()[api.EnforceLevelLabel])
	return level, err == nil
}

// evaluator is the API server's own check of pods.
var evaluator = func() policy.Evaluator {
	made, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	return made
}()

// refused returns why a namespace of that level refuses a pod.
func refused(level api.Level, pod corev1.PodTemplateSpec) (reasons []string) {
	for _, result := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			reasons = append(reasons, result.ForbiddenReason+" ("+result.ForbiddenDetail+")")
		}
	}
	return reasons
}
