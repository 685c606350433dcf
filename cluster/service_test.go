package cluster_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/cluster"
	"github.com/slipway-platform/slipway/tests/clusters"
)

// sectionOf returns the section of a cluster with that key.
func sectionOf(t *testing.T, c *cluster.Cluster, key string) reflect.Value {
	t.Helper()
	model := reflect.ValueOf(c).Elem()
	for field := range cluster.Keys(model.Type()) {
		if field.Tag.Get("json") == key {
			return model.FieldByIndex(field.Index)
		}
	}
	require.Fail(t, key+" is no section")
	return reflect.Value{}
}

func TestServices_ComeFromServersOutsideTheCluster(t *testing.T) {
	services := clusters.Infra(t).Services()
	require.NotEmpty(t, services)
	for _, service := range services {
		field, key, scheme := "Repository", "repository", "https"
		if service.Repository == "" {
			field, key, scheme = "Chart", "chart", "oci"
		}
		var vip netip.Addr
		problems := problemsOf(t, func(c *cluster.Cluster) {
			vip = c.Network.VIP
			sectionOf(t, c, service.Key).FieldByName(field).SetString(scheme + "://" + vip.String() + "/charts")
		})
		assert.Equal(t, []string{
			service.Key + "." + key + ": " + vip.String() + " is network.vip, which exists only once the cluster does; " +
				"write a server outside the cluster",
		}, problems, service.Name)
	}
}
