package component

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
)

func TestInCluster_NamesEveryMissingArgument(t *testing.T) {
	assert.EqualError(t, InCluster{}.Validate(), "kubernetesProvider: is missing; pass the provider of the cluster\n"+
		"deletedWith: is missing; pass the resource that stands for the cluster")
	var provider pulumi.ProviderResourceState
	assert.NoError(t, InCluster{KubernetesProvider: &provider, Lifetime: Lifetime{DeletedWith: &provider}}.Validate())
}

func TestSteps_NameEveryMissingArgument(t *testing.T) {
	assert.EqualError(t, Steps{}.Validate(), "name: is missing; give the cluster's name\n"+
		"kubeconfig: is missing; pass TalosCluster's\ncommandProvider: is missing; pass an explicit provider")
	var provider pulumi.ProviderResourceState
	assert.NoError(t, Steps{Name: "infra", Kubeconfig: pulumi.String("kubeconfig"), CommandProvider: &provider}.Validate())
}
