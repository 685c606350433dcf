package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTarget_NamesEveryProblemAndNothingOfTheKubeconfig(t *testing.T) {
	assert.EqualError(t, (&Target{Timeout: -1}).Validate(), "cluster: is empty; give the cluster's name\n"+
		"kubeconfig: is empty; give the content of a kubeconfig\n"+
		"timeout: -1ns is negative; give a positive duration, or none for the default")
	assert.NotContains(t, (&Target{Kubeconfig: "client-key-data: c2VjcmV0"}).Validate().Error(), "c2VjcmV0")
}
