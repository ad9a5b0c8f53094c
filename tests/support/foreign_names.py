"""Argument names of other libraries' classes, and the names that a function leaves unanswered."""

import inspect


def names_of(*functions):
    """The names of the arguments of functions and of the fields of pydantic classes."""
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
    """The names that a call neither takes nor answers, with the error.

    An answered name has another name here, or a sentence that says what to write.
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
