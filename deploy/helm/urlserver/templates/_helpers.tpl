{{- define "urlserver.labels" -}}
app.kubernetes.io/name: urlserver
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "urlserver.secret" -}}
{{ .Values.existingSecret | default (printf "%s-urlserver" .Release.Name) }}
{{- end }}

{{- define "urlserver.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- define "urlserver.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
