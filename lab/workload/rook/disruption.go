package rook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// Names of the PodDisruptionBudgets, and of the ConfigMap in which the operator keeps which host is drained.
const (
	monBudget  = "rook-ceph-mon-pdb"
	mgrBudget  = "rook-ceph-mgr-pdb"
	osdBudget  = "rook-ceph-osd" // with the suffix -host-NAME, that of a host whose OSDs must stay
	osdState   = "rook-ceph-pdbstatemap"
	draining   = "draining-failure-domain"
	drainingAt = "draining-failure-domain-duration"
	setNoout   = "set-no-out" // "true" for a drained host, and not for one that is only down
	nooutSince = "-noout-last-set-at"
	hostLabel  = "topology-location-host"
	osdLabel   = "osd"
)

// How often the operator looks at the OSDs' budgets, how long it distrusts clean placement groups after a drain, and how long noout stays
// set for a drained host.
const (
	budgetInterval = 15 * time.Second
	drainDistrust  = time.Minute
	maintenance    = 30 * time.Minute
)

// budgets keeps the PodDisruptionBudgets of a cluster's daemons, as the real operator (pkg/operator/ceph/disruption and drain.go of the
// monitors and managers): of the OSDs, any one may go; then all of its host, and none of another one until all placement groups are clean.
// Without a quorum, it changes nothing. Not modelled: other failure domains than hosts, and the 45 seconds until the real one looks at the
// monitors.
func (o *rookOperator) budgets(ctx context.Context, cr *unstructured.Unstructured, spec cephClusterSpec, c *ceph.Cluster) error {
	if !spec.DisruptionManagement.ManagePodBudgets || c.Quorum() == nil || time.Since(o.budgeted) < budgetInterval {
		return nil
	}
	o.budgeted = time.Now()
	var errs []error
	if spec.Mon.Count > 2 {
		away := spec.Mon.Count - len(c.Quorum())
		errs = append(errs, o.budget(ctx, cr, monBudget, max(0, 1+min(1, spec.Mon.Count/5)-away),
			metav1.SetAsLabelSelector(map[string]string{"app": "rook-ceph-mon"})))
	}
	if spec.Mgr.Count > 1 {
		errs = append(errs, o.budget(ctx, cr, mgrBudget, 1, metav1.SetAsLabelSelector(map[string]string{"app": "rook-ceph-mgr"})))
	}
	if len(o.pools.List()) > 0 {
		errs = append(errs, o.osdBudgets(ctx, cr, c))
	}
	return errors.Join(errs...)
}

// budget makes a PodDisruptionBudget, or changes it.
func (o *rookOperator) budget(ctx context.Context, cr *unstructured.Unstructured, name string, away int, of *metav1.LabelSelector) error {
	return o.apply(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: owned(cr.GetNamespace(), name, ownerOf(cr), nil),
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt(away)), Selector: of},
	})
}

func (o *rookOperator) removeBudget(ctx context.Context, namespace, name string) error {
	delete(o.applied, "poddisruptionbudgets/"+namespace+"/"+name)
	return ignoreMissing(o.Cluster.Client.PolicyV1().PodDisruptionBudgets(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// osdBudgets lets the OSDs of one host go, and tells in a ConfigMap which host that is.
func (o *rookOperator) osdBudgets(ctx context.Context, cr *unstructured.Unstructured, c *ceph.Cluster) error {
	states := o.Cluster.Client.CoreV1().ConfigMaps(cr.GetNamespace())
	state, err := states.Get(ctx, osdState, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		state, err = states.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: owned(cr.GetNamespace(), osdState, ownerOf(cr), nil), Data: map[string]string{draining: ""},
		}, metav1.CreateOptions{FieldManager: "rook"})
	}
	if err != nil {
		return err
	}
	seen, err := o.osdHosts(ctx, cr.GetNamespace())
	if err != nil {
		return err
	}
	seen.clean = c.Clean()
	was := maps.Clone(state.Data)
	excluded := seen.next(state.Data, time.Now())
	c.SetNoout(noout(state.Data, time.Now()))
	if err := o.guard(ctx, cr, seen.hosts, state.Data[draining], excluded); err != nil {
		return err
	}
	if !maps.Equal(was, state.Data) {
		_, err = states.Update(ctx, state, metav1.UpdateOptions{FieldManager: "rook"})
	}
	return err
}

// guard keeps the OSDs of all hosts but the drained one. Without such a host, any OSD may go but the excluded ones, which are gone. The new
// budget comes before the former one goes.
func (o *rookOperator) guard(ctx context.Context, cr *unstructured.Unstructured, hosts []string, drained string, excluded []string) error {
	var errs []error
	if drained == "" {
		each := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{osdBudget}},
		}}
		if len(excluded) > 0 {
			each.MatchExpressions = append(each.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: osdLabel, Operator: metav1.LabelSelectorOpNotIn, Values: excluded})
		}
		errs = append(errs, o.budget(ctx, cr, osdBudget, 1, each))
	}
	for _, host := range hosts {
		name := osdBudget + "-host-" + host
		if drained == "" || host == drained {
			errs = append(errs, o.removeBudget(ctx, cr.GetNamespace(), name))
		} else {
			errs = append(errs, o.budget(ctx, cr, name, 0, &metav1.LabelSelector{MatchLabels: map[string]string{hostLabel: host}}))
		}
	}
	if drained != "" {
		errs = append(errs, o.removeBudget(ctx, cr.GetNamespace(), osdBudget))
	}
	return errors.Join(errs...)
}

// osdsSeen is what the operator sees of the OSDs.
type osdsSeen struct {
	hosts   []string // all with OSDs
	down    []string // those with an OSD that is not Ready
	drained []string // those of them that take no pods
	ids     []string // OSDs that are not Ready
	clean   bool     // all placement groups are
}

func (o *rookOperator) osdHosts(ctx context.Context, namespace string) (seen osdsSeen, err error) {
	osds, err := o.Cluster.Client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + osdBudget})
	if err != nil {
		return seen, err
	}
	add := func(to *[]string, host string) {
		if at, has := slices.BinarySearch(*to, host); !has {
			*to = slices.Insert(*to, at, host)
		}
	}
	for _, osd := range osds.Items {
		host := osd.Labels[hostLabel]
		add(&seen.hosts, host)
		if osd.Status.ReadyReplicas > 0 {
			continue
		}
		add(&seen.down, host)
		add(&seen.ids, osd.Labels[osdLabel])
		node, err := o.Cluster.Client.CoreV1().Nodes().Get(ctx, host, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return seen, err
		}
		if err != nil || node.Spec.Unschedulable {
			add(&seen.drained, host)
		}
	}
	return seen, nil
}

// next decides which host may lose its OSDs: a drained one before one that is only down, until all is clean. It returns the OSDs that are
// gone although all is clean. After a drain, the operator does not believe that at once, because Ceph may not have noticed.
func (s osdsSeen) next(state map[string]string, now time.Time) (excluded []string) {
	switch {
	case s.clean && len(s.drained) > 0:
		at, err := time.Parse(time.RFC3339, state[drainingAt])
		if err != nil {
			state[drainingAt] = now.Format(time.RFC3339)
		} else if now.Sub(at) >= drainDistrust {
			return s.ids
		}
	case s.clean:
		state[draining], state[setNoout] = "", ""
		delete(state, drainingAt)
		return s.ids
	case len(s.down) > 0:
		candidates, keep := s.down, ""
		if len(s.drained) > 0 {
			candidates, keep = s.drained, "true"
		}
		if !slices.Contains(candidates, state[draining]) {
			state[draining], state[setNoout] = candidates[0], keep
		}
		state[drainingAt] = now.Format(time.RFC3339)
	}
	return nil
}

// noout returns the host whose OSDs Ceph must not mark out: the drained one, for half an hour; "" without one.
func noout(state map[string]string, now time.Time) string {
	host := state[draining]
	for key := range state {
		if strings.HasSuffix(key, nooutSince) && (key != host+nooutSince || state[setNoout] != "true") {
			delete(state, key)
		}
	}
	if state[setNoout] != "true" {
		return ""
	}
	since, err := time.Parse(time.RFC3339, state[host+nooutSince])
	if err != nil {
		since, state[host+nooutSince] = now, now.Format(time.RFC3339)
	}
	if now.Sub(since) >= maintenance {
		return ""
	}
	return host
}
