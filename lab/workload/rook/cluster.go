package rook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// Names of what Rook makes for a Ceph cluster.
const (
	rookMonSecret    = "rook-ceph-mon"
	rookMonEndpoints = "rook-ceph-mon-endpoints"
	rookConfigSecret = "rook-ceph-config"
	// rookOperatorCreds has the user of an external cluster with which Rook asks for its health.
	rookOperatorCreds = "rook-ceph-operator-creds"
	rookSecretType    = "kubernetes.io/rook"
)

// The Ceph users of the CSI driver, by the name of their Secret.
var csiUsers = map[string]struct {
	name string
	caps map[string]string
}{
	"rook-csi-rbd-provisioner": {"csi-rbd-provisioner",
		map[string]string{"mon": "profile rbd, allow command 'osd blocklist'", "mgr": "allow rw", "osd": "profile rbd"}},
	"rook-csi-rbd-node": {"csi-rbd-node",
		map[string]string{"mon": "profile rbd, allow command 'osd blocklist'", "mgr": "allow rw", "osd": "profile rbd"}},
}

// reconcileLocal makes a Ceph cluster from a CephCluster, as far as it can be made now.
func (o *rookOperator) reconcileLocal(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec) error {
	nodes, err := o.Cluster.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	count := cmp.Or(spec.Mon.Count, 3)
	if !spec.Mon.AllowMultiplePerNode && len(nodes.Items) < count {
		return refusal(fmt.Sprintf("failed to perform validation before cluster creation: cannot start %d mons on %d node(s) when "+
			"allowMultiplePerNode is false", count, len(nodes.Items)))
	}
	c, err := o.identity(ctx, cr, spec)
	if err != nil {
		return err
	}
	c.SetVersion(ceph.ParseVersion(tagOf(spec.CephVersion.Image)))
	made := cr.GetGeneration() == observedGeneration(cr)
	progress := func(what string) error {
		if made {
			return nil
		}
		return o.setCondition(ctx, cr, "Progressing", corev1.ConditionTrue, "ClusterProgressing", what)
	}
	if err := progress("Configuring Ceph Mons"); err != nil {
		return err
	}
	mons, err := o.placeMonitors(ctx, cr, spec, nodes.Items, count)
	if err != nil {
		return err
	}
	if err := o.monitors(ctx, cr, spec, c, mons); err != nil {
		return err
	}
	if len(c.Quorum()) < len(mons) && !made {
		return nil // it waits for all of them
	}
	if copies, err := strconv.Atoi(spec.CephConfig["global"]["osd_pool_default_size"]); err == nil {
		c.SetDefaultCopies(copies)
	}
	if err := errors.Join(o.keys(ctx, cr, spec, c), o.connection(ctx, cr, spec, c, mons)); err != nil {
		return err
	}
	if err := progress("Configuring Ceph Mgr(s)"); err != nil {
		return err
	}
	if err := o.managers(ctx, cr, spec, c); err != nil {
		return err
	}
	if err := progress("Configuring Ceph OSDs"); err != nil {
		return err
	}
	done, err := o.osds(ctx, cr, spec, c, nodes.Items)
	if err != nil || !done {
		return err
	}
	if err := o.setCondition(ctx, cr, "Ready", corev1.ConditionTrue, "ClusterCreated", "Cluster created successfully"); err != nil {
		return err
	}
	if err := o.budgets(ctx, cr, spec, c); err != nil {
		return err
	}
	health, checks := c.Health()
	if c.Quorum() == nil {
		health, checks = "HEALTH_ERR", map[string]string{"error": "failed to get status. . timed out: exit status 1"}
	}
	return o.setHealth(ctx, cr, c.FSID, health, checks)
}

func observedGeneration(cr *unstructured.Unstructured) int64 {
	generation, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	return generation
}

// identity returns the Ceph cluster of a CephCluster, whose id and key are in a Secret, and makes it.
func (o *rookOperator) identity(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec) (*ceph.Cluster, error) {
	namespace := cr.GetNamespace()
	secret, err := o.Cluster.Client.CoreV1().Secrets(namespace).Get(ctx, rookMonSecret, metav1.GetOptions{})
	if err == nil {
		if c := o.rook.Ceph.Find(string(secret.Data["fsid"])); c != nil {
			return c, nil
		}
		return nil, refusal("failed to create cluster: failed to start ceph monitors: the data of the monitors is lost, and the Secret " +
			rookMonSecret + " names a cluster that is gone")
	}
	if !apierrors.IsNotFound(err) {
		return nil, err
	}
	c := o.rook.Ceph.Create(ceph.ParseVersion(tagOf(spec.CephVersion.Image)))
	return c, o.applyMonSecret(ctx, cr, c)
}

// applyMonSecret makes the Secret with the id of the cluster and the keys of its monitors and its administrator.
func (o *rookOperator) applyMonSecret(ctx context.Context, cr *unstructured.Unstructured, c *ceph.Cluster) error {
	key := []byte(c.SetUser(ceph.Admin, map[string]string{"mon": "allow *", "mgr": "allow *", "osd": "allow *"}, ""))
	return o.applySecret(ctx, cr, rookMonSecret, map[string][]byte{
		"cluster-name": []byte(cr.GetNamespace()), "fsid": []byte(c.FSID), "mon-secret": []byte(c.SetUser("mon.", nil, "")),
		"admin-secret": key, "ceph-username": []byte(ceph.Admin), "ceph-secret": key,
	})
}

// monitor is a monitor and where it runs.
type monitor struct{ name, node, address string }

// placeMonitors returns the monitors with their nodes: the monitors in the ConfigMap, and new ones on nodes that take their pods.
func (o *rookOperator) placeMonitors(
	ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, nodes []corev1.Node, count int,
) ([]monitor, error) {
	var placed struct {
		Node map[string]struct{ Name, Address string }
	}
	have, err := o.Cluster.Client.CoreV1().ConfigMaps(cr.GetNamespace()).Get(ctx, rookMonEndpoints, metav1.GetOptions{})
	if err == nil {
		err = json.Unmarshal([]byte(cmp.Or(have.Data["mapping"], "{}")), &placed)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var mons []monitor
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(placed.Node)) {
		mons, taken[placed.Node[name].Name] = append(mons, monitor{name, placed.Node[name].Name, placed.Node[name].Address}), true
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for len(mons) < count {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool {
			return takesPods(n, spec.Placement["mon"].Tolerations...) && (spec.Mon.AllowMultiplePerNode || !taken[n.Name])
		})
		if i < 0 {
			return nil, refusal("failed to create cluster: failed to start ceph monitors: failed to assign pods to mons: failed to schedule mons")
		}
		taken[nodes[i].Name] = true
		mons = append(mons, monitor{string(rune('a' + len(mons))), nodes[i].Name, nodeIP(nodes[i])})
	}
	return mons, nil
}

// takesPods tells whether pods with these tolerations run on a node.
func takesPods(n corev1.Node, tolerations ...corev1.Toleration) bool {
	tainted := slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		tolerated := slices.ContainsFunc(tolerations, func(one corev1.Toleration) bool {
			return one.Key == taint.Key && (one.Effect == "" || one.Effect == taint.Effect) &&
				(one.Operator == corev1.TolerationOpExists || one.Value == taint.Value)
		})
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated
	})
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return ready && !tainted && !n.Spec.Unschedulable
}

func nodeIP(n corev1.Node) string {
	for _, address := range n.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

// monitors makes the monitors' ConfigMap and their Deployments.
func (o *rookOperator) monitors(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster,
	mons []monitor) error {
	if spec.Network.Provider != "host" {
		return refusal("the lab models Ceph on the machines' network only: spec.network.provider: host")
	}
	var names []string
	mapping := map[string]any{}
	for _, m := range mons {
		names = append(names, m.name)
		mapping[m.name] = map[string]string{"Name": m.node, "Hostname": m.node, "Address": m.address}
	}
	c.SetMembers(names)
	text, err := json.Marshal(map[string]any{"node": mapping})
	if err != nil {
		return err
	}
	if err := o.apply(ctx, &corev1.ConfigMap{
		ObjectMeta: owned(cr.GetNamespace(), rookMonEndpoints, ownerOf(cr), nil),
		Data: map[string]string{"data": monEndpoints(spec, mons), "mapping": string(text), "maxMonId": strconv.Itoa(len(mons) - 1),
			"outOfQuorum": ""},
	}); err != nil {
		return err
	}
	for _, m := range mons {
		d := o.daemon(cr, spec, "mon", m.name, m.node)
		container := &d.Spec.Template.Spec.Containers[0]
		container.Args = append(container.Args, "--fsid="+c.FSID, "--id="+m.name, "--public-addr="+m.address)
		container.Ports = []corev1.ContainerPort{{Name: "tcp-msgr2", ContainerPort: ceph.MonitorPort, HostPort: ceph.MonitorPort,
			Protocol: corev1.ProtocolTCP}}
		if err := o.apply(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// monitorPort is the port in the monitors' addresses: with RequireMsgr2 that of the second version of the protocol.
func monitorPort(spec cephClusterSpec) string {
	if spec.Network.Connections.RequireMsgr2 {
		return strconv.Itoa(ceph.MonitorPort)
	}
	return "6789"
}

// monEndpoints is the value of the monitors' ConfigMap: a=IP:PORT,b=IP:PORT.
func monEndpoints(spec cephClusterSpec, mons []monitor) string {
	var list []string
	for _, m := range mons {
		list = append(list, m.name+"="+net.JoinHostPort(m.address, monitorPort(spec)))
	}
	return strings.Join(list, ",")
}

// connection makes what clients need to connect: the Secrets with the monitors' addresses and with the users of the CSI driver, and what
// the driver's operator reads.
func (o *rookOperator) connection(
	ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster, mons []monitor,
) error {
	var hosts, names, addresses []string
	for _, m := range mons {
		address := net.JoinHostPort(m.address, strconv.Itoa(ceph.MonitorPort))
		host := "[v2:" + address + "]"
		if !spec.Network.Connections.RequireMsgr2 {
			host = "[v2:" + address + ",v1:" + net.JoinHostPort(m.address, "6789") + "]"
		}
		hosts, names, addresses = append(hosts, host), append(names, m.name), append(addresses, net.JoinHostPort(m.address, monitorPort(spec)))
	}
	secrets := map[string]map[string][]byte{
		rookConfigSecret: {"mon_host": []byte(strings.Join(hosts, ",")), "mon_initial_members": []byte(strings.Join(names, ","))},
	}
	for name, user := range csiUsers {
		key := c.SetUser("client."+user.name, user.caps, o.keyType(spec.Security.CephX.CSI))
		secrets[name] = map[string][]byte{"userID": []byte(user.name), "userKey": []byte(key)}
	}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if err := o.applySecret(ctx, cr, name, secrets[name]); err != nil {
			return err
		}
	}
	return o.describeToCSI(ctx, cr.GetNamespace(), addresses)
}

func (o *rookOperator) managers(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster) error {
	for i := range cmp.Or(spec.Mgr.Count, 2) {
		name := string(rune('a' + i))
		d := o.daemon(cr, spec, "mgr", name, "")
		d.Spec.Template.Spec.Containers[0].Args = []string{"--fsid=" + c.FSID, "--id=" + name}
		d.Spec.Template.Spec.Affinity = apart("app", "rook-ceph-mgr")
		if err := o.apply(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// apart keeps pods with a label on different nodes.
func apart(key, value string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}, TopologyKey: corev1.LabelHostname,
	}}}}
}

// osdStatus is what a job reports that prepares the disks of a node.
type osdStatus struct {
	OSDs   []preparedOSD `json:"osds"`
	Status string        `json:"status"`
}

type preparedOSD struct {
	ID   int    `json:"id"`
	Path string `json:"lv-path"`
}

// osds runs a job on each node with disks, which finds the disks, and an OSD for each disk. A disk that is not there, and a node
// that does not take the pods, is left out, as by the real operator: the cluster becomes Ready without it, and Ceph's health tells.
func (o *rookOperator) osds(
	ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster, nodes []corev1.Node,
) (done bool, err error) {
	namespace, done := cr.GetNamespace(), true
	for _, node := range spec.Storage.Nodes {
		if o.prepared[node.Name] == cr.GetGeneration() {
			continue
		}
		if !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == node.Name && takesPods(n) }) {
			o.logOnce("op-osd: node " + node.Name + " is not valid for OSDs: it is not Ready, not schedulable, or has a taint")
			continue
		}
		name := fmt.Sprintf("rook-ceph-osd-%s-status", node.Name)
		report, err := o.Cluster.Client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			done = false
			if err := o.prepare(ctx, cr, spec, c, node.Name); err != nil {
				return false, err
			}
			continue
		case err != nil:
			return false, err
		}
		var status osdStatus
		if err := json.Unmarshal([]byte(report.Data["status"]), &status); err != nil {
			return false, err
		}
		for _, osd := range status.OSDs {
			if err := o.osd(ctx, cr, spec, c, node.Name, osd); err != nil {
				return false, err
			}
		}
		if err := o.Cluster.Client.CoreV1().ConfigMaps(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return false, err
		}
		o.prepared[node.Name] = cr.GetGeneration()
	}
	return done, nil
}

// prepare starts the job that looks for the disks of a node. One of an earlier round is replaced.
func (o *rookOperator) prepare(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster,
	node string) error {
	name, jobs := "rook-ceph-osd-prepare-"+node, o.Cluster.Client.BatchV1().Jobs(cr.GetNamespace())
	have, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err == nil && have.Status.Succeeded > 0 {
		background := metav1.DeletePropagationBackground
		return jobs.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	var devices []string
	for _, entry := range spec.Storage.Nodes {
		if entry.Name == node {
			for _, device := range entry.Devices {
				devices = append(devices, device.Name)
			}
		}
	}
	text, err := json.Marshal(devices)
	if err != nil {
		return err
	}
	labels := map[string]string{"app": "rook-ceph-osd-prepare", "rook_cluster": cr.GetNamespace()}
	return o.apply(ctx, &batchv1.Job{
		ObjectMeta: owned(cr.GetNamespace(), name, ownerOf(cr), labels),
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: "rook-ceph-osd", RestartPolicy: corev1.RestartPolicyOnFailure, HostNetwork: true,
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers: []corev1.Container{{Name: "provision", Image: spec.CephVersion.Image, Args: []string{"ceph", "osd", "provision"},
				Env: []corev1.EnvVar{{Name: "ROOK_NODE_NAME", Value: node}, {Name: "ROOK_DATA_DEVICES", Value: string(text)},
					{Name: "ROOK_FSID", Value: c.FSID}}}},
		}}},
	})
}

func (o *rookOperator) osd(
	ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster, node string, osd preparedOSD,
) error {
	d := o.daemon(cr, spec, "osd", strconv.Itoa(osd.ID), node)
	container := &d.Spec.Template.Spec.Containers[0]
	container.Args = []string{"--fsid=" + c.FSID, "--id=" + strconv.Itoa(osd.ID)}
	container.Env = []corev1.EnvVar{{Name: "ROOK_BLOCK_PATH", Value: osd.Path}}
	for _, labels := range []map[string]string{d.Labels, d.Spec.Template.Labels} { // by which its budgets find it
		labels[hostLabel] = node
	}
	return o.apply(ctx, d)
}

// daemon is the Deployment of a daemon of Ceph, on a node; "" leaves the node to the scheduler.
func (o *rookOperator) daemon(cr *unstructured.Unstructured, spec cephClusterSpec, kind, id, node string) *appsv1.Deployment {
	name := "rook-ceph-" + kind + "-" + id
	labels := map[string]string{"app": "rook-ceph-" + kind, "rook_cluster": cr.GetNamespace(), "ceph_daemon_id": id, "ceph_daemon_type": kind,
		kind: id}
	selector := maps.Clone(labels)
	delete(selector, "ceph_daemon_type")
	account := map[string]string{"mon": "rook-ceph-default", "mgr": "rook-ceph-mgr", "osd": "rook-ceph-osd"}[kind]
	pod := corev1.PodSpec{
		ServiceAccountName: account, HostNetwork: true, PriorityClassName: spec.PriorityClassNames[kind],
		Tolerations: spec.Placement[kind].Tolerations,
		DNSPolicy:   corev1.DNSClusterFirstWithHostNet,
		Containers: []corev1.Container{{Name: kind, Image: spec.CephVersion.Image, Command: []string{"ceph-" + kind},
			Resources: spec.Resources[kind]}},
	}
	if node != "" {
		pod.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return &appsv1.Deployment{
		ObjectMeta: owned(cr.GetNamespace(), name, ownerOf(cr), labels),
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: selector},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod}},
	}
}

// healthIsDue tells whether the health of a CephCluster is written: in between, the object says what was so before.
func healthIsDue(was map[string]any, now time.Time, every time.Duration) bool {
	checked, _ := was["lastChecked"].(string)
	last, err := time.Parse(time.RFC3339, checked)
	return err != nil || now.Sub(last) >= every
}

// setHealth writes what Ceph says about itself.
func (o *rookOperator) setHealth(ctx context.Context, cr *unstructured.Unstructured, fsid, health string, checks map[string]string) error {
	details := map[string]any{}
	for code, message := range checks {
		severity := ceph.Severity(code)
		if code == "error" {
			severity = "Urgent"
		}
		details[code] = map[string]any{"severity": severity, "message": message}
	}
	return o.setStatus(ctx, cephClusters, cr, func(s map[string]any) {
		was, _ := s["ceph"].(map[string]any)
		if !healthIsDue(was, time.Now(), cmp.Or(o.rook.HealthEvery, time.Minute)) {
			return
		}
		now := time.Now().UTC().Format(time.RFC3339)
		ceph := map[string]any{"health": health, "lastChecked": now, "details": details}
		if fsid != "" {
			ceph["fsid"] = fsid
		}
		if before, is := was["health"].(string); is && before != health {
			ceph["previousHealth"], ceph["lastChanged"] = before, now
		}
		s["ceph"] = ceph
	})
}
