package syntax

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExpression_JudgesAnObject(t *testing.T) {
	object := map[string]any{
		"spec":   map[string]any{"replicas": int64(3)},
		"status": map[string]any{"ready": int64(2), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}
	for text, holds := range map[string]bool{
		"object.status.ready >= 2":                                                              true,
		"object.status.ready == object.spec.replicas":                                           false,
		"object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')":           true,
		"object.?status.?phase.orValue('none') == 'none'":                                       true,
		"has(object.status.phase)":                                                              false,
		"object.status.ready > 1.5":                                                             true,
		"sets.contains(['a', 'b'], ['a']) && ' x '.trim() == 'x' && [1, 2].slice(0, 1)[0] == 1": true,
	} {
		expression, err := CompileExpression(text)
		require.NoError(t, err, text)
		got, err := expression.Holds(t.Context(), object)
		require.NoError(t, err, text)
		assert.Equal(t, holds, got, text)
	}
}

func TestExpression_SaysWhyItCannotJudgeAndHidesWhatMayBeSecret(t *testing.T) {
	for text, says := range map[string]string{
		"object.status.phase == 'a'": "no such key: status",
		"object.token":               "its value is of type string, not true or false",
		"int(object.token) > 1":      "type conversion error",
		"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, " +
			"[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))": "actual cost limit exceeded",
	} {
		expression, err := CompileExpression(text)
		require.NoError(t, err, text)
		_, err = expression.Holds(t.Context(), map[string]any{"token": "ghp_0123456789abcdef0123456789abcdef0123"})
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "0123456789abcdef")
	}
}
