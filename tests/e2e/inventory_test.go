//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// inventory is what a stack has made, field by field: in Proxmox VE, in etcd, on the machines, in Kubernetes and in Pulumi's state. A field
// is named by its object and its path in it. Secrets, and values that are made anew for each cluster, are masked.
type inventory map[string]string

// differences returns what differs between two inventories, sorted, in the form of a diff.
func (i inventory) differences(other inventory) (all []string) {
	for _, field := range slices.Sorted(maps.Keys(i)) {
		switch value, exists := other[field]; {
		case !exists:
			all = append(all, "- "+field+" = "+i[field])
		case value != i[field]:
			all = append(all, "- "+field+" = "+i[field], "+ "+field+" = "+value)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(other)) {
		if _, exists := i[field]; !exists {
			all = append(all, "+ "+field+" = "+other[field])
		}
	}
	return all
}

// inventory returns what the stack infra has made.
func (l *lab) inventory() inventory {
	l.t.Helper()
	all := inventory{}
	l.addProxmox(all)
	l.addMachines(all)
	l.addObjects(all)
	l.addState(all)
	return all
}

// add adds the fields of a value.
func (i inventory) add(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, value := range value {
			i.add(path+"."+generated.ReplaceAllString(key, "[generated]"), value)
		}
	case []any:
		for n, value := range value {
			i.add(fmt.Sprint(path, "[", n, "]"), value)
		}
	default:
		i[path] = generated.ReplaceAllString(fmt.Sprint(value), "[generated]")
	}
}

// generated matches what differs between two clusters of the same stack file: UUIDs, times, checksums of secrets, the id of the token with
// which nodes join, PEM, and base64 of PEM.
var generated = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^ "]*` +
	`|\b1[789]\d{8}\b|\b[0-9a-f]{16}\b|bootstrap-token-[a-z0-9]{6}` +
	`|LS0tLS1CRUdJTi[A-Za-z0-9+/=]*|-----BEGIN [^-]*-----[^-]*-----END [^-]*-----`)

// addProxmox adds the VMs with their configurations, and the volumes.
func (l *lab) addProxmox(all inventory) {
	l.t.Helper()
	var vms []struct {
		VMID               int
		Name, Node, Status string
	}
	l.proxmox("GET", "cluster/resources?type=vm", &vms)
	require.NotEmpty(l.t, vms)
	for _, vm := range vms {
		var config map[string]any
		l.proxmox("GET", fmt.Sprintf("nodes/%s/qemu/%d/config", vm.Node, vm.VMID), &config)
		for _, made := range []string{"digest", "vmgenid", "meta"} {
			delete(config, made)
		}
		config["node"], config["status"] = vm.Node, vm.Status
		for key, value := range config {
			if text, isText := value.(string); isText {
				config[key] = diskNumber.ReplaceAllString(text, "-disk-N") // the first free number
			}
		}
		all.add("VM "+vm.Name, config)
	}
	for _, volume := range l.status().Volumes {
		all["volume "+volume] = "exists"
	}
	for _, task := range l.tasks() {
		require.NotEqual(l.t, "RUNNING", task.Status, "task %s goes on", task.UPID)
	}
}

var diskNumber = regexp.MustCompile(`-disk-\d+`)

// addMachines adds the machine configuration of each node, and the members of etcd.
func (l *lab) addMachines(all inventory) {
	l.t.Helper()
	for _, node := range strings.Fields(l.field("nodes", `{range .items[*]}{.metadata.name}={.status.addresses[0].address} {end}`)) {
		name, address, _ := strings.Cut(node, "=")
		var resource struct{ Spec string }
		text := l.secret("talosctl", "--context=infra", "--nodes="+address, "get", "machineconfig", "v1alpha1", "--output=yaml")
		require.NoError(l.t, yaml.Unmarshal([]byte(text), &resource))
		for n, document := range strings.Split(resource.Spec, "\n---\n") {
			var config map[string]any
			require.NoError(l.t, yaml.Unmarshal([]byte(document), &config))
			maskSecrets(config)
			all.add(fmt.Sprint("machine configuration of ", name, " ", n), config)
		}
	}
	for _, member := range l.etcdMembers() {
		all["member of etcd "+member] = "exists"
	}
}

// maskSecrets masks the values of a machine configuration that are generated with the machine secrets.
func maskSecrets(config map[string]any) {
	for key, value := range config {
		switch value := value.(type) {
		case map[string]any:
			maskSecrets(value)
		case string:
			switch key {
			case "crt", "key", "token", "secret", "id", "secretboxEncryptionSecret", "bootstrapToken", "clusterID", "clusterSecret":
				config[key] = "[secret]"
			}
		}
	}
}

// transient are kinds of which other objects, or the clock, make what exists.
var transient = map[string]bool{
	"Event": true, "Lease": true, "ComponentStatus": true, "PodMetrics": true, "NodeMetrics": true, "Endpoints": true, "EndpointSlice": true,
	"CiliumEndpoint": true, "CiliumIdentity": true, "CiliumNode": true, "IPAddress": true, "ControllerRevision": true, "FluxReport": true,
}

// addObjects adds the objects of Kubernetes. Of those that a controller owns, it adds the owner and the number.
func (l *lab) addObjects(all inventory) {
	l.t.Helper()
	const script = `kinds=$(kubectl --context=admin@infra api-resources --verbs=list --output=name | grep -v '^events' | paste -sd,)
exec kubectl --context=admin@infra get "$kinds" --all-namespaces --output=json 2>/dev/null`
	var objects struct{ Items []map[string]any }
	require.NoError(l.t, json.Unmarshal([]byte(l.secret("bash", "-c", script)), &objects))
	require.Greater(l.t, len(objects.Items), 200)
	all.addObjects(objects.Items)
}

func (i inventory) addObjects(objects []map[string]any) {
	owned := map[string]int{}
	for _, object := range objects {
		kind, metadata := object["kind"].(string), object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		switch owner := controllerOf(metadata); {
		case transient[kind]:
		case owner != "" && kind == "ReplicaSet":
			if replicas, _ := object["spec"].(map[string]any)["replicas"].(float64); replicas > 0 { // others are the Deployment's history
				owned[kind+" of "+owner+" in "+namespace]++
			}
		case owner != "":
			owned[kind+" of "+owner+" in "+namespace]++
		default:
			object = masked(kind, object)
			name := generated.ReplaceAllString(metadata["name"].(string), "[generated]")
			i.add(strings.TrimSpace(kind+" "+namespace+" "+name), object)
		}
	}
	for name, number := range owned {
		i[name] = fmt.Sprint(number)
	}
}

// controllerOf returns the kind and the name of the object that owns another one. The name of a ReplicaSet ends in a checksum.
func controllerOf(metadata map[string]any) string {
	owners, _ := metadata["ownerReferences"].([]any)
	for _, owner := range owners {
		if owner := owner.(map[string]any); owner["controller"] == true {
			return replicaSet.ReplaceAllString(fmt.Sprint(owner["kind"], " ", owner["name"]), "$1")
		}
	}
	return ""
}

var replicaSet = regexp.MustCompile(`^(ReplicaSet .*)-[a-z0-9]+$`)

// masked returns an object of Kubernetes without what the server sets, and with masks for what is generated.
func masked(kind string, object map[string]any) map[string]any {
	metadata := object["metadata"].(map[string]any)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"} {
		delete(metadata, field)
	}
	delete(object, "status")
	spec, _ := object["spec"].(map[string]any)
	switch kind {
	case "Secret": // its keys are compared, and not its values
		if data, _ := object["data"].(map[string]any); data != nil {
			for key := range data {
				data[key] = "[secret]"
			}
		}
	case "SealedSecret": // encrypted for the cluster
		delete(spec, "encryptedData")
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			if spec[field] != nil && spec[field] != "None" {
				delete(spec, field)
			}
		}
		ports, _ := spec["ports"].([]any)
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort")
		}
	case "Node": // ranges of pods are given in the order of registration
		delete(spec, "podCIDR")
		delete(spec, "podCIDRs")
	}
	return object
}

// addState adds the resources of Pulumi's state, with their inputs.
func (l *lab) addState(all inventory) {
	l.t.Helper()
	resources, pending := l.state()
	require.Zero(l.t, pending, "operations are pending")
	all.addState(resources)
}

func (i inventory) addState(resources []map[string]any) {
	for _, resource := range resources {
		urn := resource["urn"].(string)
		for _, field := range []string{"type", "parent", "protect", "retainOnDelete", "deletedWith", "inputs"} {
			if value, exists := resource[field]; exists {
				i.add("state "+urn+" "+field, withoutOwn(value))
			}
		}
		dependencies, _ := resource["dependencies"].([]any) // a set
		for _, dependency := range dependencies {
			i[fmt.Sprint("state ", urn, " depends on ", dependency)] = "yes"
		}
	}
}

// state returns the resources of the exported state, and the number of operations that are pending.
func (l *lab) state() (resources []map[string]any, pending int) {
	l.t.Helper()
	var state struct {
		Deployment struct {
			Resources         []map[string]any
			PendingOperations []any `json:"pending_operations"`
		}
	}
	require.NoError(l.t, json.Unmarshal([]byte(l.pulumi("stack", "export", "--stack", "infra")), &state))
	return state.Deployment.Resources, len(state.Deployment.PendingOperations)
}

// withoutOwn returns inputs of the state without what differs between two clusters of the same stack file: it masks secrets, and leaves out
// what is encrypted for the cluster, and what only a refresh has written: the names of defaults, and the speed of disks, which the program
// ignores.
func withoutOwn(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if _, secret := value["ciphertext"]; secret {
			return "[secret]"
		}
		for _, key := range []string{"encryptedData", "__defaults", "speed"} {
			delete(value, key)
		}
		for key := range value {
			value[key] = withoutOwn(value[key])
		}
	case []any:
		for i := range value {
			value[i] = withoutOwn(value[i])
		}
	}
	return value
}

func TestInventory_NamesEachDifference(t *testing.T) {
	one, other := inventory{}, inventory{}
	one.add("VM a", map[string]any{"cores": 4, "uuid": "43dc4ea2-3699-40a5-86f2-e1c3374d61fa", "disks": []any{"scsi0"}})
	other.add("VM a", map[string]any{"cores": 8, "uuid": "aaa6b5b2-20c3-4e72-a403-5a9033681f33", "name": "a"})
	one.add("made by Talos", map[string]any{"bootstrap-token-wpqr23": ""})
	other.add("made by Talos", map[string]any{"bootstrap-token-svt69h": ""})
	require.Equal(t, []string{"- VM a.cores = 4", "+ VM a.cores = 8", "- VM a.disks[0] = scsi0", "+ VM a.name = a"}, one.differences(other))
	require.Empty(t, one.differences(one))
}
