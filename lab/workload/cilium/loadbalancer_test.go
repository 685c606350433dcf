package cilium

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

func custom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

func pool(t *testing.T, text string) addressPool {
	t.Helper()
	p, err := readPool(custom(t, "apiVersion: cilium.io/v2\nkind: CiliumLoadBalancerIPPool\nmetadata: {name: a}\nspec: "+text))
	require.NoError(t, err)
	return p
}

// balanced is a Service of type LoadBalancer.
func balanced(name, requests string, has ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}}
	if requests != "" {
		s.Annotations = map[string]string{"lbipam.cilium.io/ips": requests}
	}
	for _, ip := range has {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return s
}

type list = []*corev1.Service

func ips(text string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(text)} }

func TestAssign_GivesRequestedAddressesAndSaysWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		pool     string
		services list
		ips      []netip.Addr
		reason   string
	}{
		"requested":       {"{blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "10.25.11.100")}, ips("10.25.11.100"), "satisfied"},
		"in a range":      {"{blocks: [{start: 10.25.11.100, stop: 10.25.11.101}]}", list{balanced("x", "10.25.11.101")}, ips("10.25.11.101"), "satisfied"},
		"outside":         {"{blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "10.25.12.100")}, nil, "no_pool"},
		"disabled":        {"{disabled: true, blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "10.25.11.100")}, nil, "no_pool"},
		"not selected":    {"{serviceSelector: {matchLabels: {a: b}}, blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "10.25.11.100")}, nil, "pool_selector_mismatch"},
		"taken":           {"{blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "10.25.11.100"), balanced("a", "", "10.25.11.100")}, nil, "already_allocated"},
		"any":             {"{blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "")}, ips("10.25.11.96"), "satisfied"},
		"full":            {"{blocks: [{start: 10.25.11.100}]}", list{balanced("x", ""), balanced("a", "", "10.25.11.100")}, nil, "out_of_ips"},
		"no longer there": {"{blocks: [{cidr: 10.25.11.96/28}]}", list{balanced("x", "", "10.25.13.1")}, ips("10.25.11.96"), "satisfied"},
	} {
		got := assign(c.services, []addressPool{pool(t, c.pool)})["x"]
		assert.Equal(t, c.ips, got.ips, name)
		assert.Equal(t, c.reason, got.reason, name)
		assert.Equal(t, c.reason == "satisfied", got.satisfied, name)
	}
}

func TestAdvertises_NeedsASelectorThatMatches(t *testing.T) {
	s := balanced("x", "")
	for text, want := range map[string]bool{
		"{advertisementType: Service, service: {addresses: [LoadBalancerIP]}, selector: {matchLabels: {}}}": true,
		"{advertisementType: Service, service: {addresses: [LoadBalancerIP]}}":                              false,
		"{advertisementType: Service, service: {addresses: [ClusterIP]}, selector: {}}":                     false,
		"{advertisementType: PodCIDR}": false,
	} {
		o := custom(t, "metadata: {name: a}\nkind: CiliumBGPAdvertisement\napiVersion: cilium.io/v2\nspec: {advertisements: ["+text+"]}")
		assert.Equal(t, want, advertises(o, s), text)
	}
}

// echo is a pod that answers every connection with its name.
func echo(t *testing.T, name string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, name)
		}
	}()
	return l.Addr().String()
}

func TestBalancer_EndsTheConnectionsToAPodThatHasGone(t *testing.T) {
	one, other := echo(t, "one"), echo(t, "two")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := balance(listener, []string{one, other})
	said := func() (string, net.Conn) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		text := make([]byte, 3)
		_, err = io.ReadFull(conn, text)
		require.NoError(t, err)
		return string(text), conn
	}
	to := map[string]net.Conn{}
	for range 2 {
		name, conn := said()
		to[name] = conn
	}
	require.Len(t, to, 2, "connections go to the pods in turn")

	b.set([]string{other})
	_, err = to["one"].Read(make([]byte, 1))
	require.Error(t, err)
	name, _ := said()
	require.Equal(t, "two", name)

	b.close()
	_, err = to["two"].Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", listener.Addr().String())
	require.Error(t, err)
}
