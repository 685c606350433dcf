package kubelet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeIDs is the annotation of a Node with the node's ids, by CSI driver.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// keepCSINode writes the CSINode with the drivers that are registered on the node, until ctx ends. Allocatable volumes, topology and
// migrated plugins are not modelled.
func (k *Kubelet) keepCSINode(ctx context.Context) {
	for {
		changed := k.c.shared.CSI.Changed()
		again := (<-chan time.Time)(nil)
		if err := k.writeCSINode(ctx); err != nil {
			k.log.Debug("CSINode not written", "err", err)
			again = time.After(retry)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

func (k *Kubelet) writeCSINode(ctx context.Context) error {
	want := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: k.o.Name, OwnerReferences: []metav1.OwnerReference{k.node}}}
	want.Spec.Drivers = []storagev1.CSINodeDriver{}
	ids, sockets := map[string]string{}, k.c.shared.CSI.Drivers(k.o.Name)
	for _, name := range slices.Sorted(maps.Keys(sockets)) {
		id, err := nodeID(ctx, sockets[name])
		if err != nil {
			return err
		}
		ids[name] = id
		want.Spec.Drivers = append(want.Spec.Drivers, storagev1.CSINodeDriver{Name: name, NodeID: id})
	}
	nodes := k.own.StorageV1().CSINodes()
	have, err := nodes.Get(ctx, k.o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = nodes.Create(ctx, want, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(have.Spec.Drivers, want.Spec.Drivers):
		have.Spec.Drivers = want.Spec.Drivers
		_, err = nodes.Update(ctx, have, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return k.annotateNodeIDs(ctx, ids)
}

// annotateNodeIDs writes the ids to the Node, too, where older attachers look for them.
func (k *Kubelet) annotateNodeIDs(ctx context.Context, ids map[string]string) error {
	var value any // null removes the annotation
	if len(ids) > 0 {
		text, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		value = string(text)
	}
	node, err := k.own.CoreV1().Nodes().Get(ctx, k.o.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if have, is := node.Annotations[nodeIDs]; value == have || value == nil && !is {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{nodeIDs: value}}})
	if err != nil {
		return err
	}
	_, err = k.own.CoreV1().Nodes().Patch(ctx, k.o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// nodeID asks a driver for its node's id.
func nodeID(ctx context.Context, socket string) (id string, err error) {
	err = dialDriver(socket, func(conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		info, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		id = info.GetNodeId()
		return err
	})
	return id, err
}

// dialDriver calls f with a connection to a driver's socket.
func dialDriver(socket string, f func(*grpc.ClientConn) error) error {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(conn)
}
