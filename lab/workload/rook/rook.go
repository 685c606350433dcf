package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/lab/ceph"
	"github.com/slipway-platform/slipway/lab/workload"
)

// Rook has the simulated programs of Rook 1.20, of the operator of Ceph's CSI drivers, and of these drivers, for all clusters of a lab.
//
// The operator acts on CephCluster, CephBlockPool, CephBlockPoolRadosNamespace and CephClient with the names, labels, conditions and
// texts of the real one. It uses an administrator's credentials. Not modelled: all other kinds, canary pods of monitors (the operator
// picks nodes by itself), failover of monitors, keyrings in Secrets, crash collectors, exporters, dashboards,
// rotation of keys but those of daemons. All daemons have a new release of Ceph at once. A Rook that is older than 1.19.9 or 1.20.5
// knows no types of keys, as the real one. Where the real operator waits a minute, this one waits two seconds, except for the health: a
// CephCluster may be a minute behind.
type Rook struct {
	Ceph *ceph.World

	HealthEvery time.Duration // how often the health is written; 0: once a minute, as the real operator does
}

// Behaviours are the programs of Rook, Ceph and the CSI driver. csiProvisioner is the file of the real csi-provisioner, and env is added to its
// environment.
func (r *Rook) Behaviours(csiProvisioner string, env []string) map[string]workload.Behaviour {
	return map[string]workload.Behaviour{
		"ceph/rook-ceph-operator":   r.startOperator,
		"ceph-csi-operator/manager": r.startCSIOperator,
		"ceph/mon":                  r.startMonitor,
		"ceph/mgr":                  r.startManager,
		"ceph/osd":                  r.startOSD,
		"ceph/provision":            r.startProvision,
		"cephcsi/csi-rbdplugin":     r.startCSIPlugin,
		"csi-node-driver-registrar": r.startRegistrar,
		"csi-attacher":              r.startAttacher,
		"csi-provisioner":           provisioner(csiProvisioner, env),
	}
}

// The CRDs that the operator acts on.
var (
	cephClusters = schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephclusters"}
	cephPools    = schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephblockpools"}
	cephClients  = schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephclients"}
	cephSpaces   = schema.GroupVersionResource{Group: "ceph.rook.io", Version: "v1", Resource: "cephblockpoolradosnamespaces"}
)

// rookInterval is how often the operator looks at Ceph.
const rookInterval = 2 * time.Second

// rookOperator is a run of the operator.
type rookOperator struct {
	*workload.Instance
	applier
	rook                     *Rook
	clusters, pools, clients workload.ObjectCache[*unstructured.Unstructured]
	spaces                   workload.ObjectCache[*unstructured.Unstructured]
	prepared                 map[string]int64 // generations of CephClusters for which disks were prepared, by node
	budgeted                 time.Time        // when it has looked at the PodDisruptionBudgets
	asked                    chan func()      // what commands in its container have it do, between two rounds
}

// startOperator runs the operator.
func (r *Rook) startOperator(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	if c.Cluster.Dynamic == nil {
		return nil, errors.New("rook: no client for custom resources")
	}
	i, ctx := workload.NewInstance(ctx)
	o := &rookOperator{Instance: i, applier: newApplier(c, "rook"), rook: r, prepared: map[string]int64{}, asked: make(chan func())}
	i.OnExec = o.exec
	fmt.Fprintln(c.Log, "rookcmd: starting Rook (simulated)")
	i.After(c.Cluster.PodStart, func() {
		i.SetReady(true)
		workload.RetryUntilOK(ctx, c, func() error { return o.crdsExist(ctx) }, func() { o.run(ctx) })
	})
	return i, nil
}

func (o *rookOperator) crdsExist(ctx context.Context) error {
	for _, kind := range []schema.GroupVersionResource{cephClusters, cephPools, cephClients, cephSpaces, csiConnections, csiProfiles} {
		if _, err := o.Cluster.Dynamic.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}

// run acts until the operator ends.
func (o *rookOperator) run(ctx context.Context) {
	o.clusters, o.pools = workload.NewCustomCache(ctx, o.Cluster, cephClusters), workload.NewCustomCache(ctx, o.Cluster, cephPools)
	o.clients, o.spaces = workload.NewCustomCache(ctx, o.Cluster, cephClients), workload.NewCustomCache(ctx, o.Cluster, cephSpaces)
	tick := time.NewTicker(rookInterval)
	defer tick.Stop()
	for {
		if o.clusters.Synced() && o.pools.Synced() && o.clients.Synced() && o.spaces.Synced() {
			if err := o.reconcile(ctx); err != nil && ctx.Err() == nil {
				o.logOnce("op-k8sutil: " + strings.ReplaceAll(err.Error(), "\n", "; "))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-o.clusters.Changed:
		case <-o.pools.Changed:
		case <-o.clients.Changed:
		case <-o.spaces.Changed:
		case do := <-o.asked:
			do()
		case <-tick.C:
		}
	}
}

func (o *rookOperator) reconcile(ctx context.Context) error {
	var errs []error
	for _, cr := range o.clusters.List() {
		switch err := o.reconcileCluster(ctx, cr); {
		case apierrors.IsConflict(err): // the next round reads the newer object
		case err != nil:
			errs = append(errs, fmt.Errorf("CephCluster %s: %w", cr.GetName(), err))
		}
	}
	for _, cr := range o.pools.List() {
		errs = append(errs, o.reconcilePool(ctx, cr))
	}
	for _, cr := range o.spaces.List() {
		errs = append(errs, o.reconcileSpace(ctx, cr))
	}
	for _, cr := range o.clients.List() {
		errs = append(errs, o.reconcileClient(ctx, cr))
	}
	return errors.Join(errs...)
}

// cephClusterSpec is what the operator reads of a CephCluster.
type cephClusterSpec struct {
	CephVersion struct{ Image string }
	External    struct{ Enable bool }
	CephConfig  map[string]map[string]string // options by whom they are for
	Mon         struct {
		Count                int
		AllowMultiplePerNode bool
	}
	Placement map[string]struct{ Tolerations []corev1.Toleration } // by kind of daemon
	Mgr       struct{ Count int }
	Network   struct {
		Provider    string
		Connections struct{ RequireMsgr2 bool }
	}
	Storage struct {
		Nodes []struct {
			Name    string
			Devices []struct{ Name string }
		}
	}
	Security struct {
		CephX struct {
			Daemon struct{ KeyGeneration int64 }
			CSI    cephxSpec
		}
	}
	DisruptionManagement struct{ ManagePodBudgets bool }
	HealthCheck          struct {
		MuteHealthWarning map[string]struct{ Policy string }
	}
	PriorityClassNames map[string]string
	Resources          map[string]corev1.ResourceRequirements
}

func (o *rookOperator) reconcileCluster(ctx context.Context, cr *unstructured.Unstructured) error {
	var body struct{ Spec cephClusterSpec }
	if err := workload.Decode(cr, &body); err != nil {
		return err
	}
	const finalizer = "cephcluster.ceph.rook.io"
	if cr.GetDeletionTimestamp() != nil {
		if left := o.dependents(cr.GetNamespace()); left != "" {
			return o.setCondition(ctx, cr, "DeletionIsBlocked", corev1.ConditionTrue, "ObjectHasDependents",
				"CephCluster \""+cr.GetNamespace()+"/"+cr.GetName()+"\" will not be deleted until all dependents are removed: "+left)
		}
		return o.removeFinalizer(ctx, cephClusters, cr, finalizer)
	}
	if err := o.addFinalizer(ctx, cephClusters, cr, finalizer); err != nil {
		return err
	}
	if body.Spec.External.Enable {
		return o.reconcileExternal(ctx, cr)
	}
	err := o.reconcileLocal(ctx, cr, body.Spec)
	var refused refusal
	if errors.As(err, &refused) {
		return o.setCondition(ctx, cr, "Progressing", corev1.ConditionFalse, "ClusterProgressing", refused.Error())
	}
	return err
}

// refusal is an error that the operator reports in the CephCluster's status.
type refusal string

func (r refusal) Error() string { return string(r) }

// dependents lists the objects that keep a CephCluster from being deleted.
func (o *rookOperator) dependents(namespace string) string {
	var kinds []string
	for kind, cache := range map[string]workload.ObjectCache[*unstructured.Unstructured]{"CephBlockPool": o.pools, "CephClient": o.clients} {
		var names []string
		for _, object := range cache.List() {
			if object.GetNamespace() == namespace {
				names = append(names, object.GetName())
			}
		}
		if len(names) > 0 {
			kinds = append(kinds, kind+": ["+strings.Join(names, " ")+"]")
		}
	}
	return strings.Join(kinds, ", ")
}

func (o *rookOperator) addFinalizer(ctx context.Context, kind schema.GroupVersionResource, cr *unstructured.Unstructured,
	name string) error {
	have := cr.GetFinalizers()
	if slices.Contains(have, name) {
		return nil
	}
	return o.setFinalizers(ctx, kind, cr, append(have, name))
}

func (o *rookOperator) removeFinalizer(ctx context.Context, kind schema.GroupVersionResource, cr *unstructured.Unstructured,
	name string) error {
	rest := slices.DeleteFunc(cr.GetFinalizers(), func(have string) bool { return have == name })
	return ignoreMissing(o.setFinalizers(ctx, kind, cr, rest))
}

func (o *rookOperator) setFinalizers(ctx context.Context, kind schema.GroupVersionResource, cr *unstructured.Unstructured,
	names []string) error {
	changed := cr.DeepCopy()
	changed.SetFinalizers(names)
	_, err := o.Cluster.Dynamic.Resource(kind).Namespace(cr.GetNamespace()).Update(ctx, changed, metav1.UpdateOptions{FieldManager: "rook"})
	return err
}

// states are the older form of a CephCluster's phase.
var states = map[string]string{"Connecting": "Connecting", "Connected": "Connected", "Progressing": "Creating", "Ready": "Created"}

// setCondition sets a condition of a CephCluster, and its phase and message. Of the other conditions, only "created" and "connected" stay.
func (o *rookOperator) setCondition(
	ctx context.Context, cr *unstructured.Unstructured, kind string, status corev1.ConditionStatus, reason, message string,
) error {
	state := states[kind]
	if status == corev1.ConditionFalse {
		state = "Error"
	}
	return o.setStatus(ctx, cephClusters, cr, func(s map[string]any) {
		if s["phase"] == kind && s["message"] == message && s["state"] == state &&
			(kind != "Ready" || s["observedGeneration"] == cr.GetGeneration()) {
			return
		}
		now := time.Now().UTC().Format(time.RFC3339)
		var conditions []any
		have, _, _ := unstructured.NestedSlice(s, "conditions")
		for _, entry := range have {
			condition, _ := entry.(map[string]any)
			if why := condition["reason"]; condition["type"] != kind && (why == "ClusterCreated" || why == "ClusterConnected") {
				conditions = append(conditions, condition)
			}
		}
		s["conditions"] = append(conditions, map[string]any{"type": kind, "status": string(status), "reason": reason, "message": message,
			"lastTransitionTime": now, "lastHeartbeatTime": now})
		s["phase"], s["message"] = kind, message
		if state != "" {
			s["state"] = state
		}
		if kind == "Ready" {
			s["observedGeneration"] = cr.GetGeneration()
		}
	})
}

// setStatus changes the status of an object, if the change makes a difference.
func (o *rookOperator) setStatus(
	ctx context.Context, kind schema.GroupVersionResource, cr *unstructured.Unstructured, change func(map[string]any),
) error {
	api := o.Cluster.Dynamic.Resource(kind).Namespace(cr.GetNamespace())
	current, err := api.Get(ctx, cr.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	status, _, _ := unstructured.NestedMap(current.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	before, err := json.Marshal(status)
	if err != nil {
		return err
	}
	change(status)
	after, err := json.Marshal(status)
	if err != nil || string(before) == string(after) {
		return err
	}
	current.Object["status"] = status
	_, err = api.UpdateStatus(ctx, current, metav1.UpdateOptions{FieldManager: "rook"})
	return err
}

// owned is the metadata of an object that goes with its owner.
func owned(namespace, name string, owner *metav1.OwnerReference, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{*owner}}
}

// ownerOf is the reference to a custom resource, as owner of the operator's objects for it.
func ownerOf(cr *unstructured.Unstructured) *metav1.OwnerReference {
	return metav1.NewControllerRef(cr, cr.GroupVersionKind())
}

// applySecret makes a Secret that goes with a custom resource.
func (o *rookOperator) applySecret(ctx context.Context, cr *unstructured.Unstructured, name string, data map[string][]byte) error {
	return o.apply(ctx, &corev1.Secret{
		ObjectMeta: owned(cr.GetNamespace(), name, ownerOf(cr), nil), Type: rookSecretType, Data: data,
	})
}
