package machineconfig

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/cluster"
)

// staticPods are Talos's own static pods, each by its key with the paths of its own mounts: internal/app/machined/pkg/controllers/k8s of
// Talos.
var staticPods = [][]string{
	{"apiServer", constants.KubernetesAPIServerSecretsDir, constants.KubernetesAPIServerConfigDir, constants.KubernetesAuditLogDir},
	{"controllerManager", constants.KubernetesControllerManagerSecretsDir},
	{"scheduler", constants.KubernetesSchedulerSecretsDir, constants.KubernetesSchedulerConfigDir},
}

// kubeletMounts are the folders of the machine without which the kubelet runs no pods: internal/app/machined/pkg/system/services/kubelet.go
// of Talos.
var kubeletMounts = []string{"/dev", "/etc/kubernetes", "/sys", "/var/lib/kubelet"}

const noPods = ", and the kubelet then runs none of the static pods, the control plane's included"

// checkPods refuses pods that the kubelet does not run: it reads all static pods in one list, and takes no list with an invalid pod.
// See tryDecodePodList in pkg/kubelet/config of Kubernetes, and its HasAPIObjectReference.
func (c *comparison) checkPods() {
	for i, pod := range items(c.after["machine"], "pods") {
		if at(pod, "kind") != "Pod" {
			continue // which its form says
		}
		part := []string{"machine", cluster.ItemPath("pods", counted(c.base["machine"], "pods", i))}
		c.needs(append(part, "metadata"), at(pod, "metadata"), "name")
		spec := at(pod, "spec")
		if len(items(spec, "containers")) == 0 {
			c.add(append(part, "spec", "containers"), "is missing"+noPods, "add a container")
		}
		for j, container := range items(spec, "containers") {
			c.needs(append(part, "spec", cluster.ItemPath("containers", j)), container, "name", "image")
		}
		for j, volume := range items(spec, "volumes") {
			for _, kind := range []string{"configMap", "persistentVolumeClaim", "secret"} {
				if at(volume, kind) != nil {
					c.add(append(part, "spec", cluster.ItemPath("volumes", j), kind), "is an object of the API, which no static pod may use"+noPods,
						"use a hostPath, with a file of machine.files")
				}
			}
		}
	}
	for _, own := range staticPods {
		c.checkStaticPod(own[0], own[1:])
	}
	c.checkKubelet()
}

// needs refuses an object without keys that it needs.
func (c *comparison) needs(part []string, object any, keys ...string) {
	for _, key := range keys {
		if text, _ := at(object, key).(string); text == "" {
			c.add(append(part[:len(part):len(part)], key), "is missing"+noPods, "add it")
		}
	}
}

// checkStaticPod refuses what makes one of Talos's own static pods invalid.
func (c *comparison) checkStaticPod(key string, own []string) {
	pod := at(c.after["cluster"], key)
	taken := map[any]bool{} // as they are written: Kubernetes takes /x and /x/ for two
	for i, volume := range items(pod, "extraVolumes") {
		where := at(volume, "mountPath")
		if taken[where] || slices.Contains(own, cleanPath(where)) {
			c.add([]string{"cluster", key, cluster.ItemPath("extraVolumes", i), "mountPath"}, "is the path of another mount"+noPods,
				"write another one")
		}
		taken[where] = true
	}
	env, _ := at(pod, "env").(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if len(validation.IsRelaxedEnvVarName(name)) > 0 {
			c.add([]string{"cluster", key, "env", name}, "is no name of a variable"+noPods, "write one without =")
		}
	}
	for _, name := range reservable {
		request, err1 := resource.ParseQuantity(fmt.Sprint(at(pod, "resources", "requests", name)))
		limit, err2 := resource.ParseQuantity(fmt.Sprint(at(pod, "resources", "limits", name)))
		if err1 == nil && err2 == nil && request.Cmp(limit) > 0 {
			c.add([]string{"cluster", key, "resources", "requests", name}, "is more than the limit"+noPods,
				"write at most that, or raise the limit")
		}
	}
}

// checkKubelet refuses what keeps the kubelet itself from starting: a mount over a folder of its own, and more reserved than the machine
// has, which is validateNodeAllocatable in pkg/kubelet/cm of Kubernetes.
func (c *comparison) checkKubelet() {
	kubelet := at(c.after["machine"], "kubelet")
	for i, mount := range items(kubelet, "extraMounts") {
		part := []string{"machine", "kubelet", cluster.ItemPath("extraMounts", i)}
		source, _ := at(mount, "source").(string)
		where := cleanPath(at(mount, "destination"))
		if source == "" {
			c.add(append(part, "source"), "is missing, and Talos makes that folder", "add it")
		}
		for _, own := range kubeletMounts {
			if (own == where || strings.HasPrefix(own, strings.TrimSuffix(where, "/")+"/")) && path.Clean(source) != where {
				c.add(append(part, "destination"), "hides "+own+", which the kubelet needs", "write another path, such as one below /var/mnt")
				break
			}
		}
	}
	for _, name := range []string{"cpu", "memory"} {
		sum, last := resource.Quantity{}, ""
		for _, field := range []string{"kubeReserved", "systemReserved"} {
			if amount, err := resource.ParseQuantity(fmt.Sprint(at(kubelet, "extraConfig", field, name))); err == nil {
				sum.Add(amount)
				last = field
			}
		}
		if has := map[string]int64{"cpu": int64(c.node.Cores), "memory": int64(c.node.Memory)}; sum.CmpInt64(has[name]) > 0 {
			c.add([]string{"machine", "kubelet", "extraConfig", last, name}, "reserves more than the machine has, and the kubelet does not start",
				"reserve less, or declare larger machines")
		}
	}
}
