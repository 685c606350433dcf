{{- define "name" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end -}}
{{- define "labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}
