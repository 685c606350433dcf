// Package health checks the health of a Talos cluster from one of its nodes, which `talosctl health` asks for. The checks are Talos's own
// code: they ask the APIs of all nodes, and the Kubernetes API.
package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/cosi-project/runtime/pkg/safe"
	taloscluster "github.com/siderolabs/talos/pkg/cluster"
	"github.com/siderolabs/talos/pkg/cluster/check"
	"github.com/siderolabs/talos/pkg/conditions"
	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/client"
	configmachine "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/talos/cosi"
	"github.com/slipway-platform/slipway/lab/talos/journal"
	"github.com/slipway-platform/slipway/lab/talos/rbac"
)

// Server is the cluster API of a node.
type Server struct {
	clusterapi.UnimplementedClusterServiceServer

	Resources *cosi.Resources                             // with the members that discovery has found
	Journal   *journal.Journal                            // of the node
	Dial      func(ctx context.Context) (net.Conn, error) // connects to the node's own apid
}

// HealthCheck runs Talos's checks one after the other, and sends their state whenever it changes. The first check that does
// not hold within its own or the request's time ends the call with an error.
func (s *Server) HealthCheck(in *clusterapi.HealthCheckRequest, out clusterapi.ClusterService_HealthCheckServer) error {
	talos := &localClient{dial: s.Dial}
	defer talos.Close() //nolint:errcheck // an in-memory connection
	kubernetes := &taloscluster.KubernetesClient{ClientProvider: talos, ForceEndpoint: in.GetClusterInfo().GetForceEndpoint()}
	defer kubernetes.K8sClose() //nolint:errcheck // nothing was written

	ctx, cancel := context.WithTimeout(out.Context(), in.GetWaitTimeout().AsDuration())
	defer cancel()
	ctx = metadata.NewOutgoingContext(ctx, metadata.MD{constants.APIAuthzRoleMetadataKey: rbac.Roles(ctx).Strings()})
	nodes, err := s.nodes(ctx, in.GetClusterInfo(), kubernetes)
	if err != nil {
		return err
	}
	var addresses []string
	for _, n := range nodes.Nodes() {
		addresses = append(addresses, n.InternalIP.String())
	}
	if err := out.Send(&clusterapi.HealthCheckProgress{Message: fmt.Sprintf("discovered nodes: %q", addresses)}); err != nil {
		return err
	}
	state := struct {
		taloscluster.ClientProvider
		taloscluster.K8sProvider
		taloscluster.Info
	}{talos, kubernetes, nodes}
	return check.Wait(ctx, &state, append(check.DefaultClusterChecks(), check.ExtraClusterChecks()...), &healthReporter{out: out})
}

// nodes are the nodes to check: the request's, otherwise discovery's, otherwise Kubernetes'.
func (s *Server) nodes(
	ctx context.Context, asked *clusterapi.ClusterInfo, kubernetes *taloscluster.KubernetesClient,
) (taloscluster.Info, error) {
	if len(asked.GetControlPlaneNodes()) > 0 || len(asked.GetWorkerNodes()) > 0 {
		controlPlanes, err := taloscluster.IPsToNodeInfos(asked.GetControlPlaneNodes())
		if err != nil {
			return nil, err
		}
		workers, err := taloscluster.IPsToNodeInfos(asked.GetWorkerNodes())
		return nodesByType{configmachine.TypeControlPlane: controlPlanes, configmachine.TypeWorker: workers}, err
	}
	members, err := safe.StateListAll[*clusterres.Member](ctx, s.Resources.State())
	if err != nil {
		s.Journal.Printk("discovery service returned error: %v", err)
	} else if members.Len() > 0 {
		return check.NewDiscoveredClusterInfo(slices.Collect(members.All()))
	}
	api, err := kubernetes.K8sClient(ctx)
	if err != nil {
		return nil, err
	}
	list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := nodesByType{}
	for _, node := range list.Items {
		kind := configmachine.TypeWorker
		if _, is := node.Labels[constants.LabelNodeRoleControlPlane]; is {
			kind = configmachine.TypeControlPlane
		}
		info, err := nodeInfo(node)
		if err != nil {
			return nil, err
		}
		out[kind] = append(out[kind], info)
	}
	return out, nil
}

// nodeInfo reads the addresses of a Node.
func nodeInfo(node corev1.Node) (taloscluster.NodeInfo, error) {
	var out taloscluster.NodeInfo
	for _, a := range node.Status.Addresses {
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		ip, err := netip.ParseAddr(a.Address)
		if err != nil {
			return out, err
		}
		if a.Type == corev1.NodeInternalIP {
			out.InternalIP = ip
		}
		out.IPs = append(out.IPs, ip)
	}
	return out, nil
}

// nodesByType are the nodes of a cluster by their type.
type nodesByType map[configmachine.Type][]taloscluster.NodeInfo

// Nodes returns all nodes, control planes first.
func (n nodesByType) Nodes() []taloscluster.NodeInfo {
	return slices.Concat(n[configmachine.TypeControlPlane], n[configmachine.TypeWorker])
}

// NodesByType returns the nodes of a type.
func (n nodesByType) NodesByType(t configmachine.Type) []taloscluster.NodeInfo { return n[t] }

// healthReporter sends each state of a check once.
type healthReporter struct {
	out  clusterapi.ClusterService_HealthCheckServer
	last string
}

// Update sends the state of a check if it has changed.
func (r *healthReporter) Update(condition conditions.Condition) {
	line := fmt.Sprintf("waiting for %s", condition)
	if line == r.last {
		return
	}
	r.last = line
	_ = r.out.Send(&clusterapi.HealthCheckProgress{Message: strings.TrimSpace(line)}) // fails only if the client has disconnected
}

// localClient is a client of the node's own apid. The zero connection is opened by the first call.
type localClient struct {
	dial   func(ctx context.Context) (net.Conn, error)
	client *client.Client
}

// Client connects to the node's apid, which forwards calls to other nodes.
func (c *localClient) Client(endpoints ...string) (*client.Client, error) {
	if len(endpoints) > 0 {
		return nil, errors.New("custom endpoints not supported with LocalClientProvider")
	}
	if c.client != nil {
		return c.client, nil
	}
	var err error
	c.client, err = client.New(context.Background(), client.WithUnixSocket(constants.APISocketPath), client.WithGRPCDialOptions(
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.dial(ctx) }),
	))
	return c.client, err
}

// Close closes the connection.
func (c *localClient) Close() error {
	if c.client == nil {
		return nil
	}
	defer func() { c.client = nil }()
	return c.client.Close()
}
