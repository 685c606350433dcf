package rook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-platform/slipway/lab/ceph"
)

// statusTimeout is the longest time of a question to an external cluster; a real operator waits 15 s.
const statusTimeout = time.Second

// reconcileExternal connects to the Ceph cluster that the imported Secret and ConfigMap name. As with the real operator, the phase is
// Connected once these exist and the key has the form of a key: without an image of Ceph, nothing is asked before. Whether Ceph answers is in
// its health.
func (o *rookOperator) reconcileExternal(ctx context.Context, cr *unstructured.Unstructured) error {
	namespace := cr.GetNamespace()
	if phase, _, _ := unstructured.NestedString(cr.Object, "status", "phase"); phase == "" {
		if err := o.setCondition(ctx, cr, "Connecting", corev1.ConditionTrue, "ClusterConnecting",
			"Attempting to connect to an external Ceph cluster"); err != nil {
			return err
		}
	}
	secret, err := o.Cluster.Client.CoreV1().Secrets(namespace).Get(ctx, rookMonSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o.logOnce("ceph-cluster-controller: waiting for connection info of the external cluster. retrying in 1m0s.")
		return nil
	}
	if err != nil {
		return err
	}
	config, err := o.Cluster.Client.CoreV1().ConfigMaps(namespace).Get(ctx, rookMonEndpoints, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// The real operator makes an empty one, and is then without monitors. It looks again when the CephCluster changes or it restarts.
		o.logOnce("ceph-cluster-controller: waiting for connection info of the external cluster. retrying in 1m0s.")
		return nil
	}
	if err != nil {
		return err
	}
	user, key := string(secret.Data["ceph-username"]), string(secret.Data["ceph-secret"])
	if user == "" {
		user, key = ceph.Admin, string(secret.Data["admin-secret"])
	}
	if user == ceph.Admin && key == "admin-secret" { // as Rook's script writes it: the user is in a Secret of its own
		own, err := o.Cluster.Client.CoreV1().Secrets(namespace).Get(ctx, rookOperatorCreds, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			o.logOnce("ceph-cluster-controller: waiting for connection info of the external cluster. retrying in 1m0s.")
			return nil
		}
		if err != nil {
			return err
		}
		user, key = string(own.Data["userID"]), string(own.Data["userKey"])
	}
	if decoded, err := base64.StdEncoding.DecodeString(key); err != nil || len(decoded) == 0 {
		return o.setCondition(ctx, cr, "Progressing", corev1.ConditionFalse, "ClusterProgressing",
			fmt.Sprintf("invalid user health checker key for user %q", user))
	}
	addresses := addressesIn(config.Data["data"])
	if len(addresses) == 0 || len(secret.Data["fsid"]) == 0 {
		return o.setCondition(ctx, cr, "Progressing", corev1.ConditionFalse, "ClusterProgressing", "the cluster identity was not established")
	}
	if err := o.describeToCSI(ctx, namespace, slices.Sorted(maps.Values(addresses))); err != nil {
		return err
	}
	if err := o.setCondition(ctx, cr, "Connected", corev1.ConditionTrue, "ClusterConnected", "Cluster connected successfully"); err != nil {
		return err
	}
	return o.checkExternal(ctx, cr, addresses, user, key)
}

// addressesIn reads a=IP:PORT,b=IP:PORT.
func addressesIn(text string) map[string]string {
	addresses := map[string]string{}
	for entry := range strings.SplitSeq(text, ",") {
		if name, address, is := strings.Cut(entry, "="); is {
			addresses[name] = address
		}
	}
	return addresses
}

// checkExternal asks the external cluster for its health, and takes over its present monitors.
func (o *rookOperator) checkExternal(ctx context.Context, cr *unstructured.Unstructured, addresses map[string]string, user,
	key string) error {
	asking, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	session, err := o.rook.Ceph.Connect(asking, slices.Collect(maps.Values(addresses)), user, key)
	var c *ceph.Cluster
	if err == nil {
		c, err = session.Cluster()
	}
	if err != nil {
		text := "failed to get status. . timed out: exit status 1"
		if errors.Is(err, ceph.ErrDenied) || errors.Is(err, ceph.ErrCaps) {
			text = "failed to get status. [errno 13] RADOS permission denied (error connecting to the cluster): exit status 13"
		}
		return o.setHealth(ctx, cr, "", "HEALTH_ERR", map[string]string{"error": text})
	}
	health, checks := c.Health()
	if err := o.setHealth(ctx, cr, c.FSID, health, checks); err != nil {
		return err
	}
	present := c.Monitors()
	if len(present) == 0 || maps.Equal(present, addresses) {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(present)) {
		list = append(list, name+"="+present[name])
	}
	config, err := o.Cluster.Client.CoreV1().ConfigMaps(cr.GetNamespace()).Get(ctx, rookMonEndpoints, metav1.GetOptions{})
	if err != nil {
		return err
	}
	config.Data["data"] = strings.Join(list, ",")
	_, err = o.Cluster.Client.CoreV1().ConfigMaps(cr.GetNamespace()).Update(ctx, config, metav1.UpdateOptions{FieldManager: "rook"})
	return err
}
