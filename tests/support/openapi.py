"""Checks a reply against /openapi.json, with the part of JSON Schema that it uses.

  python3 openapi.py SPEC PATH METHOD STATUS <REPLY
"""
import json
import sys

TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'integer': int}


def problems(spec, schema, value, where):
    if '$ref' in schema:
        target = spec
        for part in schema['$ref'].removeprefix('#/').split('/'):
            target = target[part]
        return problems(spec, target, value, where)
    if 'oneOf' in schema:
        fitting = [s for s in schema['oneOf'] if not problems(spec, s, value, where)]
        return [] if len(fitting) == 1 else [f'{where}: fits {len(fitting)} of oneOf']
    kind = schema.get('type')
    if kind == 'number':
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return [f'{where}: not a number']
        low, high = schema.get('minimum', value), schema.get('maximum', value)
        return [] if low <= value <= high else [f'{where}: {value} out of range']
    if kind and not isinstance(value, TYPES[kind]):
        return [f'{where}: not of type {kind}']
    if value not in schema.get('enum', [value]):
        return [f'{where}: {value} is none of enum']
    found = [f'{where}: {name} is missing' for name in schema.get('required', [])
             if name not in value]
    if kind == 'object':
        for name, inner in schema.get('properties', {}).items():
            if name in value:
                found += problems(spec, inner, value[name], f'{where}.{name}')
    if kind == 'array' and 'items' in schema:
        for i, item in enumerate(value):
            found += problems(spec, schema['items'], item, f'{where}[{i}]')
    return found


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        spec = json.load(file)
    path, method, status = sys.argv[2:5]
    answers = spec['paths'][path][method]['responses']
    if status not in answers:
        sys.exit(f'{method} {path}: {status} is not described')
    answer = answers[status]
    if '$ref' in answer:
        answer = spec['components']['responses'][answer['$ref'].split('/')[-1]]
    content = answer.get('content', {}).get('application/json')
    if not content:
        return
    found = problems(spec, content['schema'], json.load(sys.stdin), 'reply')
    if found:
        sys.exit(f'{method} {path} {status}: {found[0]}')


main()
