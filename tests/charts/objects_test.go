package charts

import (
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/components/cilium/chart"
)

// podSpecs are the pods that the objects make, by the id of their maker.
func podSpecs(objects []object) map[string]object {
	specs := map[string]object{}
	for _, o := range objects {
		if spec, ok := o.at("spec.template.spec").(map[string]any); ok {
			specs[o.id()] = spec
		}
	}
	return specs
}

// mounted are the names of one kind of source that a pod's volumes take and that must be there, projected ones included.
func mounted(pod object, source, name string) (names []string) {
	collect := func(from any) {
		below, ok := from.(map[string]any)
		if !ok || below["optional"] == true {
			return
		}
		if text, ok := below[name].(string); ok {
			names = append(names, text)
		}
	}
	volumes, _ := pod["volumes"].([]any)
	for _, volume := range volumes {
		collect(object(volume.(map[string]any)).at(source))
		sources, _ := object(volume.(map[string]any)).at("projected.sources").([]any)
		for _, projected := range sources {
			collect(object(projected.(map[string]any)).at(source))
		}
	}
	return names
}

// container is the container of that name in a pod, among those that initialise it, too.
func container(t *testing.T, pod object, name string) object {
	t.Helper()
	for _, kind := range []string{"containers", "initContainers"} {
		list, _ := pod[kind].([]any)
		for _, c := range list {
			if c := object(c.(map[string]any)); c.text("name") == name {
				return c
			}
		}
	}
	t.Fatalf("no container %q", name)
	return nil
}

func TestObjects_BringAllThatTheirPodsMount(t *testing.T) {
	looked := 0
	for _, v := range everyMinor() {
		objects := v.rendered(t)
		there := map[string]bool{}
		for _, o := range objects {
			there[o.text("kind")+" "+o.text("metadata.name")] = true
		}
		for id, pod := range podSpecs(objects) {
			for _, secret := range append(mounted(pod, "secret", "secretName"), mounted(pod, "secret", "name")...) {
				assert.True(t, there["Secret "+secret], "%s: %s mounts Secret %s", v, id, secret)
				looked++
			}
			for _, configMap := range mounted(pod, "configMap", "name") {
				assert.True(t, there["ConfigMap "+configMap], "%s: %s mounts ConfigMap %s", v, id, configMap)
				looked++
			}
		}
	}
	assert.Greater(t, looked, len(everyMinor()))
}

func TestObjects_HoldTheCertificatesThatWereHandedIn(t *testing.T) {
	for _, version := range versions {
		v := called(t, "everything")
		v.version = version
		holdsWhatWasHandedIn(t, v.rendered(t))
	}
}

func holdsWhatWasHandedIn(t *testing.T, objects []object) {
	t.Helper()
	want := map[string][2]string{
		"hubble-server-certs":               {"server cert", "server key"},
		"hubble-relay-client-certs":         {"relay cert", "relay key"},
		"clustermesh-apiserver-server-cert": {"mesh server cert", "mesh server key"},
		"clustermesh-apiserver-admin-cert":  {"mesh admin cert", "mesh admin key"},
		"clustermesh-apiserver-remote-cert": {"mesh remote cert", "mesh remote key"},
		"clustermesh-apiserver-local-cert":  {"mesh local cert", "mesh local key"},
	}
	connections := []string{"cilium-clustermesh", "cilium-kvstoremesh"} // where the peers answer; no key is in them
	for _, o := range objects {
		if o.text("kind") != "Secret" {
			continue
		}
		if slices.Contains(connections, o.text("metadata.name")) {
			for key, text := range o["data"].(map[string]any) {
				plain, err := base64.StdEncoding.DecodeString(text.(string))
				require.NoError(t, err)
				assert.NotContains(t, string(plain), " key", "%s %s", o.id(), key)
			}
			continue
		}
		pair, known := want[o.text("metadata.name")]
		require.True(t, known, "%s is made by the chart, and so another one each time", o.id())
		data := o["data"].(map[string]any)
		for key, text := range map[string]string{"ca.crt": documents[chart.PathCA], "tls.crt": pair[0], "tls.key": pair[1]} {
			assert.Equal(t, base64.StdEncoding.EncodeToString([]byte(text)), data[key], "%s %s", o.id(), key)
		}
		delete(want, o.text("metadata.name"))
	}
	assert.Empty(t, want)
}

func TestObjects_AreAYAMLStreamWithoutPlaceholders(t *testing.T) {
	for _, v := range everyMinor() {
		stream := v.manifests(t)
		assert.True(t, strings.HasPrefix(stream, "---\n"))
		for _, mark := range []string{"slipway:", base64.StdEncoding.EncodeToString([]byte("slipway:")[:6])} {
			assert.NotContains(t, stream, mark, v)
		}
	}
}

// Every difference between two renderings would be a change of the machine configuration.
func TestObjects_AreTheSameBytesEachTime(t *testing.T) {
	for _, v := range everyMinor() {
		again, err := v.render(t)
		require.NoError(t, err)
		assert.Equal(t, v.manifests(t), again, v)
	}
}

func TestObjects_NameTheirNamespaceAndComeAfterIt(t *testing.T) {
	clusterWide := map[string]bool{"Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "GatewayClass": true,
		"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true}
	for _, v := range everyMinor() {
		namespaces, seen := map[string]bool{"kube-system": true}, map[string]bool{}
		for _, o := range v.rendered(t) {
			assert.False(t, seen[o.id()], "%s: %s twice", v, o.id())
			seen[o.id()] = true
			if o.text("kind") == "Namespace" {
				namespaces[o.text("metadata.name")] = true
			}
			if clusterWide[o.text("kind")] {
				assert.Nil(t, o.at("metadata.namespace"), "%s: %s", v, o.id())
			} else {
				assert.True(t, namespaces[o.text("metadata.namespace")], "%s: %s", v, o.id())
			}
		}
	}
}

func TestObjects_RunOnTalos(t *testing.T) {
	for _, v := range everyMinor() {
		pods := podSpecs(v.rendered(t))
		agent := pods["DaemonSet kube-system/cilium"]
		for id, pod := range pods {
			all, _ := pod["initContainers"].([]any)
			containers, _ := pod["containers"].([]any)
			for _, c := range append(all, containers...) {
				add, _ := object(c.(map[string]any)).at("securityContext.capabilities.add").([]any)
				assert.NotContains(t, add, "SYS_MODULE", "%s %s: Talos loads no modules for a pod", v, id)
				assert.NotContains(t, add, "NET_BIND_SERVICE", "%s %s: nothing listens on a privileged port", v, id)
			}
			for _, c := range all {
				assert.NotEqual(t, "mount-cgroup", object(c.(map[string]any)).text("name"), "%s %s: Talos has mounted it", v, id)
			}
		}
		assert.Equal(t, []any{"NET_ADMIN", "SYS_ADMIN"},
			container(t, pods["DaemonSet kube-system/cilium-envoy"], "cilium-envoy").at("securityContext.capabilities.add"), v)
		env := map[string]any{}
		list, _ := container(t, agent, "cilium-agent")["env"].([]any)
		for _, e := range list {
			env[object(e.(map[string]any)).text("name")] = e.(map[string]any)["value"]
		}
		assert.Equal(t, "localhost", env["KUBERNETES_SERVICE_HOST"], v)
		assert.Equal(t, "7445", env["KUBERNETES_SERVICE_PORT"], v)
	}
}

func TestObjects_TheOperatorIsTwoThatOneNodeCanUpdate(t *testing.T) {
	for _, v := range everyMinor() {
		operator := one(t, v.rendered(t), "Deployment", "cilium-operator")
		assert.EqualValues(t, 2, operator.at("spec.replicas"), v)
		assert.Equal(t, "100%", operator.at("spec.strategy.rollingUpdate.maxUnavailable"), v)
		terms, _ := operator.at("spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution").([]any)
		require.Len(t, terms, 1, v)
		assert.Equal(t, "kubernetes.io/hostname", terms[0].(map[string]any)["topologyKey"], v)
		matches := object(terms[0].(map[string]any)).at("labelSelector.matchLabels").(map[string]any)
		labels := operator.at("spec.template.metadata.labels").(map[string]any)
		for key, value := range matches {
			assert.Equal(t, value, labels[key], "the affinity is with the operator's own pods")
		}
	}
}

func TestObjects_RollOutWithTheConfigurationTheyRead(t *testing.T) {
	read := map[string]string{
		"DaemonSet/cilium": "cilium.io/cilium-configmap-checksum", "Deployment/cilium-operator": "cilium.io/cilium-configmap-checksum",
	}
	for name, annotation := range read {
		kind, name, _ := strings.Cut(name, "/")
		sum := func(variant string) any {
			annotations, _ := one(t, called(t, variant).rendered(t), kind, name).at("spec.template.metadata.annotations").(map[string]any)
			return annotations[annotation]
		}
		require.NotEmpty(t, sum("default"), name)
		assert.NotEqual(t, sum("default"), sum("no-announcements"), "%s restarts when an option changes", name)
	}
}

// Without that, etcd trusts the old CA until a restart.
func TestObjects_TheMeshServersPodsAreReplacedWithTheCA(t *testing.T) {
	pods := func(ca string) any {
		v := called(t, "mesh")
		mesh := v.set
		v.set = func(values *chart.Values) { mesh(values); values.MeshCA = cluster.NewSecret(ca) }
		helms := one(t, decode(t, installed(t, v).Manifest), "Deployment", "clustermesh-apiserver").at("spec.template")
		stream, err := v.render(t)
		require.NoError(t, err)
		assert.Equal(t, helms, one(t, decode(t, stream), "Deployment", "clustermesh-apiserver").at("spec.template"), "in mode inline, too")
		return helms
	}
	ca := func(certificate string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(certificate)})) +
			string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}))
	}
	assert.Equal(t, pods(ca("first")), pods(ca("first")))
	assert.NotEqual(t, pods(ca("first")), pods(ca("second")))
}

func TestObjects_PoliciesOfAMeshAreAboutTheirOwnCluster(t *testing.T) {
	config := one(t, called(t, "mesh").rendered(t), "ConfigMap", "cilium-config")
	assert.Equal(t, "true", config["data"].(map[string]any)["policy-default-local-cluster"])
}

func TestObjects_TheMeshServerHasItsAddressOfThePool(t *testing.T) {
	service := one(t, called(t, "mesh").rendered(t), "Service", "clustermesh-apiserver")
	assert.Equal(t, "LoadBalancer", service.at("spec.type"))
	assert.Equal(t, "10.25.11.100", service.at("metadata.annotations").(map[string]any)["lbipam.cilium.io/ips"])
	assert.Nil(t, service.at("spec.loadBalancerIP"))
	for _, o := range called(t, "default").rendered(t) {
		assert.NotContains(t, o.text("metadata.name"), "clustermesh", "no mesh unless asked for")
	}
}

func TestObjects_PartsComeWithTheirOption(t *testing.T) {
	for part, with := range map[string][]string{
		"GatewayClass /cilium":                   {"gateway", "everything"},
		"Deployment kube-system/hubble-ui":       {"hubble-ui", "everything"},
		"Secret kube-system/hubble-server-certs": nil, // all but one
	} {
		for _, v := range everyMinor() {
			there := false
			for _, o := range v.rendered(t) {
				there = there || o.id() == part
			}
			want := slices.Contains(with, v.name)
			if with == nil {
				want = v.name != "no-hubble"
			}
			assert.Equal(t, want, there, "%s with %s", part, v)
		}
	}
}
