{{- define "hipr.labels" -}}
app.kubernetes.io/name: hipr-worker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "hipr.secret" -}}
{{ .Values.existingSecret | default (printf "%s-keys" .Release.Name) }}
{{- end }}
{{- define "hipr.drain" -}}
end=$(($(date +%s) + {{ .Values.drainSeconds }}))
while [ "$(date +%s)" -lt "$end" ] && hipr top --once --worker 127.0.0.1:9400 | grep -q '^[1-9][0-9]* of '; do sleep 2; done
{{- end }}
