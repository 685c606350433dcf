package cilium

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/lab/workload"
)

// ciliumConfigMap is the name of the ConfigMap with Cilium's configuration, in the namespace of its pods.
const ciliumConfigMap = "cilium-config"

// ciliumConfig is Cilium's configuration: the data of the chart's ConfigMap. A missing key has the default of Cilium
// 1.18.
type ciliumConfig map[string]string

func readCiliumConfig(ctx context.Context, c workload.Container) (ciliumConfig, error) {
	m, err := c.Cluster.Client.CoreV1().ConfigMaps(c.Pod.Namespace).Get(ctx, ciliumConfigMap, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func (c ciliumConfig) get(key, otherwise string) string {
	return cmp.Or(c[key], otherwise)
}

func (c ciliumConfig) on(key string) bool {
	v, err := strconv.ParseBool(c[key])
	return err == nil && v
}

func (c ciliumConfig) cluster() string { return c.get("cluster-name", "default") }

// buildConfig is the agent's init container `config`. It reads the ConfigMap and fails without it.
func buildConfig(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	i.After(c.Cluster.PodStart/5, func() {
		_, err := readCiliumConfig(ctx, c)
		if err == nil {
			fmt.Fprintf(c.Log, "level=info msg=\"Reading configuration from config-map:%s/%s\"\n", c.Pod.Namespace, ciliumConfigMap)
			i.Exit(0)
			return
		}
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("failed to retrieve ConfigMap %s/%s: %w", c.Pod.Namespace, ciliumConfigMap, err)
		}
		fmt.Fprintf(c.Log, "Error: Build config failed: failed to resolve configurations: failed to read config source config-map:%s/%s: %s\n",
			c.Pod.Namespace, ciliumConfigMap, err)
		i.Exit(1)
	})
	return i, nil
}
