"""The argument names of classes in other libraries, and a check of how functions handle them."""

import inspect


def names_of(*functions):
    """Return the names of the arguments of functions, or of the fields of pydantic classes."""
    names = []
    for function in functions:
        fields = getattr(function, "model_fields", None)
        if fields is None:
            variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            parameters = inspect.signature(function).parameters.values()
            fields = [p.name for p in parameters if p.kind not in variable]
        names += [name for name in fields if name not in ("self", "cls")]
    return sorted(set(names))


def unanswered(call, names):
    """Return the names that a call rejects without a helpful error message.

    The result contains these error messages. A helpful message suggests a different name or
    explains what to write instead.
    """
    wrong = {}
    for name in names:
        try:
            call(**{name: None})
        except Exception as error:
            says = str(error)
            is_unknown = "unexpected keyword" in says or "has no argument" in says
            lists_names = "valid names are" in says or "it has" in says
            if is_unknown and (lists_names or ";" not in says):
                wrong[name] = says
            if ".__init__()" in says:
                wrong[name] = says
    return wrong
