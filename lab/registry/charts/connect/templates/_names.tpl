{{- define "labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: connect
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- define "container" -}}
{{- $ := .root }}
- name: {{ .own.name }}
  image: {{ .own.imageRepository }}:{{ tpl $.Values.connect.version $ }}
  imagePullPolicy: {{ $.Values.connect.imagePullPolicy }}
  securityContext: {{- toYaml .own.securityContext | nindent 4 }}
  resources: {{- toYaml .own.resources | nindent 4 }}
  env:
    - {name: OP_SESSION, value: /home/opuser/.op/1password-credentials.json}
    - {name: OP_HTTP_PORT, value: {{ .own.httpPort | quote }}}
    - {name: OP_BUS_PORT, value: {{ .bus | quote }}}
    - {name: OP_BUS_PEERS, value: "localhost:{{ .peer }}"}
    - {name: OP_LOG_LEVEL, value: {{ .own.logLevel }}}
    {{- range $.Values.connect.customEnvVars }}
    - {name: {{ .name }}, value: {{ .value | quote }}}
    {{- end }}
  {{- if $.Values.connect.probes.readiness }}
  readinessProbe:
    httpGet: {path: /health, scheme: HTTP, port: {{ .own.httpPort }}}
    initialDelaySeconds: 15
  {{- end }}
  {{- if $.Values.connect.probes.liveness }}
  livenessProbe:
    httpGet: {path: /heartbeat, scheme: HTTP, port: {{ .own.httpPort }}}
    failureThreshold: 3
    periodSeconds: 30
    initialDelaySeconds: 15
  {{- end }}
  volumeMounts:
    - {name: {{ $.Values.connect.dataVolume.name }}, mountPath: /home/opuser/.op/data}
    - {name: credentials, mountPath: /home/opuser/.op/1password-credentials.json, subPath: 1password-credentials.json}
{{- end -}}
